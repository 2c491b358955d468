"""`tflq/engine/kernels/families/contraction.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from support.single_op import T, allocate, assert_same, build, draw
from tflq.errors import ModelError

OPTIONS = {
    "CONV_2D": ("Conv2DOptions", {"stride_w": 1, "stride_h": 1, "padding": 0}),
    "DEPTHWISE_CONV_2D": (
        "DepthwiseConv2DOptions",
        {"stride_w": 1, "stride_h": 1, "padding": 0, "depth_multiplier": 1},
    ),
    "FULLY_CONNECTED": ("FullyConnectedOptions", {}),
    "TRANSPOSE_CONV": ("TransposeConvOptions", {"stride_w": 1, "stride_h": 1, "padding": 0}),
}


def _model(op: str, zero_point_of_x: int, zero_point_of_w: int) -> tuple[bytes, T]:
    """A uint8 contraction with those zero points, and its input."""
    rng = np.random.default_rng(7)
    shape = {"FULLY_CONNECTED": (3, 4), "DEPTHWISE_CONV_2D": (1, 2, 2, 4)}.get(op, (3, 2, 2, 4))
    w = T("uint8", shape, 2.0**-8, zero_point_of_w, value=rng.integers(0, 256, shape).astype(np.uint8))
    x = T("uint8", (2, 4) if op == "FULLY_CONNECTED" else (1, 4, 4, 4), 2.0**-5, zero_point_of_x)
    channels = 4 if op == "DEPTHWISE_CONV_2D" else 3
    y = T("uint8", (2, 3) if op == "FULLY_CONNECTED" else (1, 4, 4, channels), 2.0**-2, 128)
    bias = T("int32", (channels,), 2.0**-13, 0, value=np.arange(channels, dtype=np.int32))
    operands = [x, w, bias]
    if op == "TRANSPOSE_CONV":
        operands = [T("int32", (4,), value=np.array([1, 4, 4, 3], np.int32)), w, x]
    return build(op, operands, [y], OPTIONS[op]), x


@pytest.mark.parametrize(("x", "w"), [(0, 255), (255, 0)])
@pytest.mark.parametrize("op", OPTIONS)
def test_zero_points_at_the_ends_of_their_type_have_the_bits_of_the_runtime(op: str, x: int, w: int) -> None:
    model, fed = _model(op, x, w)
    assert_same(model, [draw(np.random.default_rng(8), fed)], (op, x, w))


@each(("x", "w"), [(256, 100), (-1, 100), (100, 256), (100, 2**31 - 1)])
@each("op", OPTIONS)
def test_zero_points_that_are_no_codes_are_refused(op: str, x: int, w: int) -> None:
    with pytest.raises(
        ModelError, match=rf"operator 0 {op}: zero point .*: expected 0 to 255, got {x if w == 100 else w}"
    ):
        allocate(_model(op, x, w)[0])
