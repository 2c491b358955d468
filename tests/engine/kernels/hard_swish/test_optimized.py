"""`kernels/hard_swish/optimized.py` against live LiteRT: floats of any magnitude, in blocks and left over."""

from __future__ import annotations

import pytest

from support.float_sweeps import assert_function_matches


@pytest.mark.parametrize("size", [1, 3, 4, 17, 1 << 20])
def test_floats(size: int) -> None:
    assert_function_matches("HARD_SWISH", "litert-opt", size)
