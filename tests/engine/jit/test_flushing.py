"""Operations of float32 that flush subnormal numbers, by the processor, compared with their definitions in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tflq.engine.jit import flushing
from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.flushing import begin_flushing, end_flushing
from tflq.typing import Array

TINY = 2.0**-126
SPECIAL = np.array([0.0, -0.0, 1e-40, -1e-40, TINY, -TINY, 3e-20, 3e38, np.inf, -np.inf, np.nan, 1.0], np.float32)


@compiled
def operation(a: Any, b: Any) -> Any:
    """Stand for one of the operations."""
    return a


@compiled
def apply(a: Array, b: Array, out: Array) -> None:
    """Compute out[i] = operation(a[i], b[i]). The caller guarantees: one size."""
    before = begin_flushing()
    for i in range(out.size):
        out[i] = operation(a[i], b[i])
    end_flushing(before)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_instructions_have_the_definition_s_bits(name: str) -> None:
    """Around the smallest normal number, too, where the rounding decides whether a result is flushed."""
    rng, function = np.random.default_rng(1), getattr(flushing, name)
    small = rng.standard_normal((2, 4000)).astype(np.float32) * np.float32(2.0**-63)
    for a, b in (rng.choice(SPECIAL, (2, 4000)), small, rng.standard_normal((2, 4000)).astype(np.float32)):
        out = np.empty(4000, np.float32)
        apply.bind(operation=function)(a, b, out)
        with np.errstate(all="ignore"):
            want = np.array([function.python(*each) for each in zip(a, b, strict=True)], np.float32)
        same = (out.view(np.uint32) == want.view(np.uint32)) | (np.isnan(out) & np.isnan(want))
        assert same.all(), (a[~same][:3], b[~same][:3])


def test_numbers_that_python_computes_are_not_flushed() -> None:
    out = np.empty(1, np.float32)
    apply.bind(operation=flushing.add)(np.ones(1, np.float32), np.ones(1, np.float32), out)
    assert np.float32(1e-40) + np.float32(0) > 0
