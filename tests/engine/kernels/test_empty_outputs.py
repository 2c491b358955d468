"""Windows, batches and units that leave nothing to compute: LiteRT's kernels return at once."""

from __future__ import annotations

import numpy as np
import pytest

from support.single_op import T, build, tflq

STEP = {"padding": 1, "stride_h": 2, "stride_w": 2, "dilation_h_factor": 1, "dilation_w_factor": 1}


@pytest.mark.parametrize("type_", ["float32", "int8"])
@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize(("batch", "size", "out"), [(1, 3, 0), (0, 6, 2)])
def test_convolutions(op: str, type_: str, batch: int, size: int, out: int) -> None:
    q = {} if type_ == "float32" else {"scale": 0.1}
    x, y = T(type_, (batch, size, size, 3), **q), T(type_, (batch, out, out, 3), **q)
    w = T(type_, (3, 4, 4, 3) if op == "CONV_2D" else (1, 4, 4, 3), **q, value=1)
    bias = T("int32" if q else "float32", (3,), 0.01 if q else None, value=0)
    name, extra = ("Conv2DOptions", {}) if op == "CONV_2D" else ("DepthwiseConv2DOptions", {"depth_multiplier": 1})
    model = build(op, [x, w, bias], [y], (name, {**STEP, **extra}))
    assert tflq(model, [np.zeros(x.shape, type_)])[0].shape == (batch, out, out, 3)


@pytest.mark.parametrize("type_", ["float32", "int8"])
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pooling_window_larger_than_the_image(op: str, type_: str) -> None:
    q = {} if type_ == "float32" else {"scale": 0.1}
    options = {"padding": 1, "stride_h": 1, "stride_w": 1, "filter_height": 6, "filter_width": 6}
    model = build(op, [T(type_, (1, 3, 3, 2), **q)], [T(type_, (1, 0, 0, 2), **q)], ("Pool2DOptions", options))
    assert tflq(model, [np.zeros((1, 3, 3, 2), type_)])[0].shape == (1, 0, 0, 2)


@pytest.mark.parametrize("type_", ["float32", "int8"])
@pytest.mark.parametrize(("rows", "units"), [(0, 4), (3, 0)])
def test_fully_connected(type_: str, rows: int, units: int) -> None:
    q = {} if type_ == "float32" else {"scale": 0.1}
    w = T(type_, (units, 5), **q, value=np.ones((units, 5)))
    model = build(
        "FULLY_CONNECTED",
        [T(type_, (rows, 5), **q), w, None],
        [T(type_, (rows, units), **q)],
        ("FullyConnectedOptions", {}),
    )
    assert tflq(model, [np.zeros((rows, 5), type_)])[0].shape == (rows, units)


def test_batch_matmul() -> None:
    options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
    for type_, q in (("float32", {}), ("int8", {"scale": 0.1})):
        for shapes in (((0, 2, 3), (0, 3, 4)), ((2, 3), (3, 0)), ((1, 0, 3), (3, 2))):
            out = (np.zeros(shapes[0]) @ np.zeros(shapes[1])).shape
            model = build("BATCH_MATMUL", [T(type_, s, **q) for s in shapes], [T(type_, out, **q)], options)
            assert tflq(model, [np.zeros(s, type_) for s in shapes])[0].shape == out
