"""Fused multiply-adds that flush subnormal float32 to zero: by the processor, or in float64.

Compiled code calls `before = begin_flushing()`, computes floats that it loads from arrays and stores to arrays, and
calls `end_flushing(before)`. If the processor cannot flush, `multiply_add` does, and so do `add` and `multiply`, which
call it.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tflq.jit.compiled import Compiled, Int, Real, compiled, compiling_is_off
from tflq.microkernels.forms import features
from tflq.numerics.multiply_add import multiply_add_flushed


@cache
def is_native() -> bool:
    """Return whether this processor has both: x86-64 with FMA."""
    return not compiling_is_off() and platform.machine() in ("x86_64", "AMD64") and "fma" in features()


class Native(Compiled[..., Any]):
    """A function that compiled code takes from the processor, if `is_native`; `python` defines it elsewhere."""

    def __init__(self, definition: Callable[..., Any], position: int) -> None:
        super().__init__(definition)
        self.position = position

    def digest(self) -> str:
        """Return a digest of the code that counts: the definition, or what writes the instructions."""
        return _sources() + str(self.position) if is_native() else super().digest()

    def _linked(self) -> Any:
        if not is_native():
            return super()._linked()
        return _intrinsics()[self.position]


@cache
def _sources() -> str:
    return hashlib.sha256(Path(__file__).with_name("flushed_emission.py").read_bytes()).hexdigest()[:15]


@cache
def _intrinsics() -> tuple[Any, Any, Any]:
    from tflq.microkernels.flushed_emission import intrinsics

    return intrinsics()


def _begin() -> Int:
    """Do nothing: `multiply_add` flushes."""
    return 0


def _end(before: Int) -> None:
    """Do nothing."""


begin_flushing = Native(_begin, 0)
end_flushing = Native(_end, 1)
multiply_add = Native(multiply_add_flushed.python, 2)


@compiled
def add(a: Real, b: Real) -> Real:
    """Return a + b."""
    return multiply_add(a, np.float32(1), b)


@compiled
def multiply(a: Real, b: Real) -> Real:
    """Return a * b."""
    return multiply_add(a, b, np.float32(-0.0))
