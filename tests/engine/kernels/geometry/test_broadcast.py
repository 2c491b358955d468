"""`tflq/engine/kernels/geometry/axes.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels.geometry.axes import repeat_blocks


@pytest.mark.parametrize(
    ("shape", "whole", "blocks"),
    [
        ((8, 1, 2), (8, 32, 2), (8, 32, 2)),
        ((3,), (4, 5, 3), (1, 20, 3)),
        ((4, 1, 1), (4, 5, 3), (4, 15, 1)),
        ((), (4, 5), (1, 20, 1)),
        ((1, 5, 1), (4, 5, 3), None),
        ((2, 3), (1, 2, 3), (6, 1, 1)),
    ],
)
def test_blocks_in_which_an_operand_is_repeated(
    shape: tuple[int, ...], whole: tuple[int, ...], blocks: tuple[int, int, int] | None
) -> None:
    assert repeat_blocks(shape, whole) == blocks
    if blocks is not None and np.prod(shape) != np.prod(whole):
        x = np.arange(np.prod(shape)).reshape(shape)
        outer, _, inner = blocks
        repeated = np.broadcast_to(x.reshape(outer, 1, inner), blocks).reshape(whole)
        np.testing.assert_array_equal(repeated, np.broadcast_to(x, whole))
