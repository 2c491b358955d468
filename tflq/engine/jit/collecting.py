"""Machine code for a level of processors, collected from the calls of a process.

If this processor has the level, the calls are made by that code. Otherwise they are made by code for any processor,
except those of micro-kernels, which have no such code: their results stay as they are in memory. So a model that runs
here shows what it needs on any processor.
"""

from __future__ import annotations

from typing import Any

from tflq.engine.jit import shipped
from tflq.engine.jit.addresses import Addresses
from tflq.engine.jit.emitting import Write, emit
from tflq.engine.jit.images import load
from tflq.engine.jit.machines import NotBuildable
from tflq.engine.jit.native import Entry, Native
from tflq.engine.jit.targets import Level, assume


class Collection:
    """Machine code by the names under which `shipped` finds it.

    Args:
        level: The level that the code is for. The process must have NUMBA_CPU_NAME and NUMBA_CPU_FEATURES of it, if it
            is one of this machine's, and can no longer compute.
        own: The levels of this processor.
    """

    def __init__(self, level: Level, own: tuple[Level, ...]) -> None:
        self.entries: dict[str, bytes] = {}
        self._level, self._is_own, self._least = level, level in own, own[-1]
        assume(level)
        Native.instead = self._collect
        Addresses.instead = self._collect_written

    def _collect(self, name: str, source: Any, types: str, args: tuple[Any, ...]) -> Entry | None:
        from tflq.engine.jit.building import build

        try:
            code = build(source.linkable(), args, self._level, source.reads)
        except NotBuildable:
            return None
        self.entries[shipped.name_of(name, source.origin(), types)] = code.packed()
        if self._is_own:
            return Entry(code, source.frees_threads)
        if source.is_written:
            return Entry(code, False, call=_nothing)
        return Entry(build(source.linkable(), args, self._least, source.reads), source.frees_threads)

    def _collect_written(self, name: str, write: Write) -> int:
        code = emit(write, self._level)
        self.entries[name] = code.packed()
        return load(code.body) if self._is_own else 0


def _nothing(at: int) -> int:
    return 0
