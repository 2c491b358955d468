"""`tflq/engine/kernels/families/movement.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels.families import movement


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64, np.bool_])
def test_parts_are_moved_whatever_their_width(dtype: type) -> None:
    x = np.random.default_rng(1).integers(0, 2, (5, 4, 16)).astype(dtype)
    for width in range(1, 17):
        for start in (0, 1, 3):
            part = x[1:4, :, start : start + width]
            turned = part.transpose(1, 0, 2)
            one = x[1:4, :, start : start + 1]
            for source, shape in (
                (part, part.shape),
                (turned, turned.shape),
                (part[..., ::-1], part.shape),
                (one, part.shape),
            ):
                out = np.zeros(shape, dtype)
                movement.Copying(source, out).bound()()
                np.testing.assert_array_equal(out, np.broadcast_to(source, shape))


def test_a_nan_is_moved_with_its_bits() -> None:
    bits = np.array([[0x7F800001, 0xFFC12345, 1, 2]] * 3, np.uint32)
    out = np.zeros((3, 4), np.float32)
    movement.Copying(bits.view(np.float32), out).bound()()
    np.testing.assert_array_equal(out.view(np.uint32), bits)
