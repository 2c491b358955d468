"""Float activations against narrow weights, held against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from support import contracting as c
from support.each import each
from support.graphs import assert_runs
from support.single_op import Array, T, assert_same, build, tflq
from support.sweeping import few
from tflq.errors import ModelError, UndefinedResultError


def _weights(rng: np.random.Generator, type_: str, shape: tuple[int, ...], axis: int, several: bool) -> T:
    value = c.codes(rng, type_, shape)
    if several and type_ != "uint8" and shape[axis] > 1:
        return T(type_, shape, [c.scale(rng) for _ in range(shape[axis])], 0, axis, value)
    return T(type_, shape, c.scale(rng), 0, value=value)


def _reals(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Normal values of some magnitude; ties between codes, zeros and one-sided values among them."""
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3)
    kind = rng.integers(0, 5)
    if kind == 0:
        x = np.round(x * 4) / 4
    elif kind == 1:
        x = abs(x)
    elif kind == 2:
        x *= rng.random(shape) < 0.2
    elif kind == 3:
        x = rng.integers(-127, 128, shape) + rng.choice([0.0, 0.5], shape)
    return x.astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["int8", "uint8", "int4", "int2"])
@pytest.mark.parametrize("seed", range(24))
def test_fully_connected(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(type_)])
    length, units = int(rng.choice([1, 3, 8, 15, 16, 24, 61, 200])), int(rng.integers(1, 14))
    leading = [(4,), (1,), (2, 3), (1, 2, 2)][seed % 4]
    options = {
        "asymmetric_quantize_inputs": bool(seed % 3),
        "keep_num_dims": bool(rng.integers(0, 2)),
        "fused_activation_function": int(rng.choice([0, 0, 1, 2, 3, 4, 5])),
    }
    w = _weights(rng, type_, (units, length), 0, bool(seed & 1))
    bias = T("float32", (units,), value=c.codes(rng, "float32", (units,))) if rng.random() < 0.7 else None
    shape = (*leading, units) if options["keep_num_dims"] else (int(np.prod(leading)), units)
    x = T("float32", (*leading, length))
    model = build("FULLY_CONNECTED", [x, w, bias], [T("float32", shape)], ("FullyConnectedOptions", options), 12)
    assert_same(model, [_reals(rng, (*leading, length))], (length, units, options))


def test_fully_connected_without_scale() -> None:
    """The output is the bias; all inputs zero, and no rows."""
    rng = np.random.default_rng(3)
    for w in (T("int8", (3, 9), value=5), T("int8", (3, 9), 0.1, value=5)):
        for x in (_reals(rng, (2, 9)), np.zeros((2, 9), np.float32), np.zeros((0, 9), np.float32)):
            bias = T("float32", (3,), value=[1.5, -0.0, 7])
            model = build(
                "FULLY_CONNECTED",
                [T("float32", x.shape), w, bias],
                [T("float32", (2, 3))],
                ("FullyConnectedOptions", {}),
                3,
            )
            assert_same(model, [x], w.scale)


def test_lost_signs() -> None:
    """-128 in a whole group of sixteen, against negative inputs: row sums that leave 16 bits, too."""
    rng = np.random.default_rng(4)
    for length in (40, 4096):
        x = -abs(rng.standard_normal((3, length))).astype(np.float32)
        w = T("int8", (5, length), 0.1, value=np.where(rng.random((5, length)) < 0.9, -128, 127))
        for asymmetric in (False, True):
            options = {"asymmetric_quantize_inputs": asymmetric}
            model = build(
                "FULLY_CONNECTED",
                [T("float32", x.shape), w, None],
                [T("float32", (3, 5))],
                ("FullyConnectedOptions", options),
                9,
            )
            assert_same(model, [x], options)


def _convolution(rng: np.random.Generator, depth: int) -> tuple[tuple[int, ...], tuple[int, int], dict[str, object]]:
    kernel = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    options: dict[str, object] = {
        "padding": int(rng.integers(0, 2)),
        "stride_h": int(rng.integers(1, 3)),
        "stride_w": int(rng.integers(1, 3)),
        "dilation_h_factor": int(rng.integers(1, 3)),
        "dilation_w_factor": int(rng.integers(1, 3)),
        "fused_activation_function": int(rng.integers(0, 4)),
    }
    return (int(rng.integers(1, 4)), int(rng.integers(5, 9)), int(rng.integers(5, 9)), depth), kernel, options


@each("type_", ["int8", "uint8", "int4"])
@pytest.mark.parametrize("seed", few(range(20), *range(8)))
def test_conv_2d(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(type_), 1])
    several = bool(seed & 1) and type_ != "uint8"
    groups = int(rng.choice([1, 1, 2, 3])) if several else 1
    depth, channels = groups * int(rng.integers(1, 5)), groups * int(rng.integers(1, 5))
    shape, kernel, options = _convolution(rng, depth)
    if seed % 5 == 0:
        kernel, options = (1, 1), {"padding": 0, "stride_h": 1, "stride_w": 1}
    w = _weights(rng, type_, (channels, *kernel, depth // groups), 0, several and channels > 1)
    groups = groups if w.scale is not None and np.size(w.scale) > 1 else 1
    if groups == 1:
        w = _weights(rng, type_, (channels, *kernel, depth), 0, several)
    bias = T("float32", (channels,), value=c.codes(rng, "float32", (channels,)))
    inputs = [T("float32", shape), w, bias]
    model = build("CONV_2D", inputs, [T("float32", (1, 1, 1, channels))], ("Conv2DOptions", options), 5)
    assert_same(model, [_reals(rng, shape)], (shape, w.shape, options))


def test_conv_2d_equal_scales() -> None:
    """Scales of channels that are all the same are one scale."""
    rng = np.random.default_rng(5)
    for channels in (3, 4):
        value = c.codes(rng, "int8", (channels, 3, 3, 5))
        value[0] = -128
        w = T("int8", (channels, 3, 3, 5), [0.25] * channels, 0, 0, value)
        bias = T("float32", (channels,), value=c.codes(rng, "float32", (channels,)))
        options = {"padding": 1, "stride_h": 1, "stride_w": 1}
        model = build(
            "CONV_2D",
            [T("float32", (2, 6, 6, 5)), w, bias],
            [T("float32", (2, 4, 4, channels))],
            ("Conv2DOptions", options),
            5,
        )
        assert_same(model, [_reals(rng, (2, 6, 6, 5))], channels)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_depthwise_conv_2d(seed: int) -> None:
    rng = np.random.default_rng([seed, 2])
    depth, times = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    shape, kernel, options = _convolution(rng, depth)
    channels = depth * times
    value = c.codes(rng, "int8", (1, *kernel, channels))
    w = T("int8", value.shape, [c.scale(rng) for _ in range(channels)], 0, 3, value)
    inputs = [T("float32", shape), w, T("float32", (channels,), value=c.codes(rng, "float32", (channels,)))]
    if seed % 3 == 0:
        inputs.pop()
    options["depth_multiplier"] = times
    output = T("float32", (1, 1, 1, channels))
    model = build("DEPTHWISE_CONV_2D", inputs, [output], ("DepthwiseConv2DOptions", options), 6)
    assert_same(model, [_reals(rng, shape)], (shape, kernel, options))


@each("seed", range(20))
def test_transpose_conv(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    n, height, width, depth = (int(v) for v in rng.integers(1, 5, 4))
    channels, kernel = int(rng.integers(1, 6)), (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    steps = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    options = {"padding": seed & 1, "stride_h": steps[0], "stride_w": steps[1]}
    sizes = [
        (size - 1) * step + (taps if seed & 1 else 1)
        for size, step, taps in zip((height, width), steps, kernel, strict=True)
    ]
    w = _weights(rng, "int8", (channels, *kernel, depth), 0, bool(seed & 2))
    inputs = [T("int32", (4,), value=[n, *sizes, channels]), w, T("float32", (n, height, width, depth))]
    if seed & 4:
        inputs.append(T("float32", (channels,), value=c.codes(rng, "float32", (channels,))))
    output = T("float32", (n, *sizes, channels))
    model = build("TRANSPOSE_CONV", inputs, [output], ("TransposeConvOptions", options), 3)
    assert_same(model, [_reals(rng, (n, height, width, depth))], (w.shape, sizes, options))


@each("seed", range(40))
def test_batch_matmul(seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    rows, length, columns = int(rng.integers(1, 6)), int(rng.choice([1, 5, 16, 40])), int(rng.integers(2, 6))
    full = tuple(int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3))))
    lead_x = tuple(1 if rng.random() < 0.3 else n for n in full)
    lead_y = tuple(1 if rng.random() < 0.4 else n for n in full)
    adjoint = bool(seed & 1), bool(seed & 2)
    shape_x = (*lead_x, *((length, rows) if adjoint[0] else (rows, length)))
    shape_y = (*lead_y, *((columns, length) if adjoint[1] else (length, columns)))
    axis = len(shape_y) - (2 if adjoint[1] else 1)
    y = _weights(rng, "int8", shape_y, axis, bool(seed & 4))
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1], "asymmetric_quantize_inputs": bool(seed & 8)}
    output = T("float32", (*np.broadcast_shapes(lead_x, lead_y), rows, columns))
    model = build("BATCH_MATMUL", [T("float32", shape_x), y], [output], ("BatchMatMulOptions", options), 4)
    assert_same(model, [_reals(rng, shape_x)], (shape_x, shape_y, options))


def test_undefined() -> None:
    """Scales that the source would read beyond their end, and what it reads without having made it."""
    x, bias, y = T("float32", (1, 4, 4, 4)), T("float32", (4,), value=0), T("float32", (1, 4, 4, 4))
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    image = np.ones((1, 4, 4, 4), np.float32)
    one = T("int8", (1, 1, 1, 4), 0.5, 0, 0, 1)
    with pytest.raises(UndefinedResultError, match="scales"):
        tflq(build("DEPTHWISE_CONV_2D", [x, one, bias], [y], ("DepthwiseConv2DOptions", options), 6), [image])
    del options["depth_multiplier"]
    grouped = T("int8", (4, 1, 1, 2), 0.5, value=1)
    with pytest.raises(UndefinedResultError, match="groups"):
        tflq(build("CONV_2D", [x, grouped, bias], [y], ("Conv2DOptions", options), 6), [image])


def test_refused() -> None:
    x, y = T("float32", (2, 3)), T("float32", (2, 4))
    value = np.ones((2, 3), np.float32)
    for w, match in ((T("int4", (4, 3), 0.1, 1, value=1), "zero point"),):
        with pytest.raises(ModelError, match=match):
            tflq(build("FULLY_CONNECTED", [x, w, None], [y], ("FullyConnectedOptions", {}), 12), [value])


@each("asymmetric", [False, True])
@each("value", [3e38, -3.4e38, 1e-45, 1e-40, -1e-40, -1e-38, 2e-37])
def test_extreme_inputs(asymmetric: bool, value: float) -> None:
    """Widths that leave float32, and ranges whose scale is no normal number: its inverse is infinite."""
    rng = np.random.default_rng(9)
    w = T("int8", (3, 19), 0.1, 0, value=c.codes(rng, "int8", (3, 19)))
    x = np.zeros((2, 19), np.float32)
    x[0, 3], x[0, 17], x[1, 5], x[1, 18] = value, -value, 1.0, value
    options = ("FullyConnectedOptions", {"asymmetric_quantize_inputs": asymmetric})
    model = build("FULLY_CONNECTED", [T("float32", (2, 19)), w, None], [T("float32", (2, 3))], options, 9)
    assert_same(model, [x])
    x[1, 1] = np.inf
    with pytest.raises(UndefinedResultError):
        tflq(model, [x])


@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "BATCH_MATMUL"])
def test_weights_that_change(op: str) -> None:
    """Sums of weights are made once: a second run has those of the first."""
    rng = np.random.default_rng(10)
    tensors = [T("float32", (4, 19)), T("int8", (19, 19), 0.1, 0)]
    options: dict[str, object] = {"asymmetric_quantize_inputs": True}
    table = "FullyConnectedOptions" if op == "FULLY_CONNECTED" else "BatchMatMulOptions"
    model = build(op, tensors, [T("float32", (4, 19))], (table, options), 4)
    runs = [[rng.standard_normal((4, 19)).astype(np.float32), c.codes(rng, "int8", (19, 19))] for _ in range(3)]
    runs.insert(0, [np.zeros((4, 19), np.float32), runs[0][1][::-1].copy()])
    assert_runs(model, runs)
