from __future__ import annotations

import numpy as np
import pytest

from support import contracting as c
from support.single_op import T, assert_same, build, tflq
from tflq.errors import ModelError

TYPES = ("float32", "uint8", "int8", "int16")
OPS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")


@pytest.mark.slow
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(20))
def test_pool(op: str, type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, TYPES.index(type_), OPS.index(op)])
    kernel, stride = rng.integers(1, 6, 2), rng.integers(1, 4, 2)
    padding = int(rng.integers(0, 2))
    size = [int(rng.integers(k if padding else 1, k + 9)) for k in kernel]
    out = [
        (n + int(s) - (1 if padding == 0 else int(k))) // int(s) for n, k, s in zip(size, kernel, stride, strict=True)
    ]
    batch, channels = int(rng.integers(1, 3)), int(rng.integers(1, 20))
    x = c.activation(rng, type_, (batch, *size, channels))
    y = T(x.type, (batch, *out, channels), x.scale, x.zero_point)
    options = {
        "padding": padding,
        "stride_h": int(stride[0]),
        "stride_w": int(stride[1]),
        "filter_height": int(kernel[0]),
        "filter_width": int(kernel[1]),
        "fused_activation_function": int(rng.integers(0, 4)),
    }
    model = build(op, [x], [y], ("Pool2DOptions", options), 3)
    assert_same(model, [c.codes(rng, type_, tuple(x.shape))], options)


@pytest.mark.parametrize("op", OPS)
def test_not_numbers(op: str) -> None:
    """NaN, infinities and signed zeros."""
    rng = np.random.default_rng(1)
    x = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], (2, 8, 8, 8)).astype(np.float32)
    for function in range(4):
        options = {
            "padding": 0,
            "stride_h": 2,
            "stride_w": 2,
            "filter_height": 2,
            "filter_width": 2,
            "fused_activation_function": function,
        }
        model = build(op, [T("float32", x.shape)], [T("float32", (2, 4, 4, 8))], ("Pool2DOptions", options))
        assert_same(model, [x], function)


@pytest.mark.parametrize("op", OPS)
def test_refused(op: str) -> None:
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    cases = [((4, 4, 2), options, "number of dimensions"), ((1, 4, 4, 2), {**options, "stride_w": 0}, "stride_w")]
    for shape, given, match in cases:
        model = build(op, [T("int8", shape, 0.1, 0)], [T("int8", shape, 0.1, 0)], ("Pool2DOptions", given))
        with pytest.raises(ModelError, match=match):
            tflq(model, [np.zeros(shape, np.int8)])
