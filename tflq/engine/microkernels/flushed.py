"""Fused multiply-adds that flush subnormal float32 to zero: by the processor, or in float64.

Compiled code calls `before = begin_flushing()`, computes floats that it loads from arrays and stores to arrays, and
calls `end_flushing(before)`. If the processor cannot flush, `multiply_add` does, and so do `add` and `multiply`, which
call it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled, Int, Real, compiled, compiling_is_off
from tflq.engine.jit.targets import features, machine
from tflq.engine.microkernels.emitted import sources
from tflq.engine.numerics.normal_float32 import fma, read


@cache
def is_native() -> bool:
    """Return whether this processor has both: x86-64 with FMA."""
    return not compiling_is_off() and machine() == "x86_64" and "fma" in features()


class Native(Compiled[..., Any]):
    """A function that compiled code takes from the processor, if `is_native`; `python` defines it elsewhere."""

    def __init__(self, definition: Compiled[..., Any], position: int) -> None:
        super().__init__(definition.python)
        self.position = position

    @property
    def writes_code(self) -> bool:  # type: ignore[override]
        """True where the processor has the instructions."""
        return is_native()

    def digest(self) -> str:
        """Return a digest of the code that counts: the definition, or what writes the instructions."""
        return sources()[:15] + str(self.position) if is_native() else super().digest()

    def _link(self) -> Any:
        return _intrinsics()[self.position] if is_native() else super()._link()


@cache
def _intrinsics() -> tuple[Any, Any, Any]:
    from tflq.engine.microkernels.flushed_emission import intrinsics

    return intrinsics()


def _native(position: int) -> Callable[[Compiled[..., Any]], Native]:
    """Take a function from the intrinsics, by position. Put it above `@compiled`."""
    return lambda definition: Native(definition, position)


@_native(0)
@compiled
def begin_flushing() -> Int:
    """Begin to flush; return what `end_flushing` takes. Without the instructions, `multiply_add` flushes."""
    return 0


@_native(1)
@compiled
def end_flushing(before: Int) -> None:
    """End what `begin_flushing` began."""


@_native(2)
@compiled
def multiply_add(a: Real, b: Real, c: Real) -> Real:
    """Return a * b + c, rounded once."""
    return fma(read(a), read(b), read(c))


@compiled
def add(a: Real, b: Real) -> Real:
    """Return a + b."""
    return multiply_add(a, np.float32(1), b)


@compiled
def multiply(a: Real, b: Real) -> Real:
    """Return a * b."""
    return multiply_add(a, b, np.float32(-0.0))
