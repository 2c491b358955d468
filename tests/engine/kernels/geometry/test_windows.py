from __future__ import annotations

import numpy as np
import pytest

from support import contracting as c
from support.single_op import T, assert_same, build, tflq
from tflq.errors import ModelError, UndefinedResultError

TYPES = ("float32", "uint8", "int8", "int16")
ACTIVATIONS = (0, 1, 2, 3)


def _pixels(size: int, kernel: int, stride: int, dilation: int, padding: int) -> int:
    if padding == 0:
        return -(-size // stride)
    return max(0, (size + stride - ((kernel - 1) * dilation + 1)) // stride)


def _window(rng: np.random.Generator) -> tuple[tuple[int, int], tuple[int, int], dict[str, int], tuple[int, int]]:
    """Image size, kernel size, options and output size of a window that fits."""
    kernel = tuple(int(k) for k in rng.integers(1, 5, 2))
    stride = tuple(int(s) for s in rng.integers(1, 4, 2))
    dilation = tuple(int(d) for d in rng.choice([1, 1, 2, 3], 2))
    padding = int(rng.integers(0, 2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    image = tuple(int(rng.integers(r if padding else 1, r + 8)) for r in reach)
    out = tuple(_pixels(i, k, s, d, padding) for i, k, s, d in zip(image, kernel, stride, dilation, strict=True))
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": int(rng.choice(ACTIVATIONS)),
    }
    return image, kernel, options, out


def _bias_type(rng: np.random.Generator, type_: str, options: dict[str, int]) -> str:
    if type_ == "float32":
        return "float32"
    if type_ != "int16":
        return "int32"
    options["quantized_bias_type"] = int(rng.choice([0, 2, 4]))
    return "int32" if options["quantized_bias_type"] == 2 else "int64"


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(40))
def test_conv_2d(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, TYPES.index(type_)])
    (h, w), (kh, kw), options, out = _window(rng)
    batch, groups, depth = int(rng.integers(1, 3)), int(rng.choice([1, 1, 2, 3])), int(rng.integers(1, 20))
    filters = groups * int(rng.integers(1, 12))
    x = c.activation(rng, type_, (batch, h, w, groups * depth))
    kernel = c.weights(rng, type_, (filters, kh, kw, depth), 0, ("int8", "int8", "int4"))
    b = c.bias(rng, x, kernel, filters, _bias_type(rng, type_, options))
    y = c.result(rng, x, kernel, (batch, *out, filters), kh * kw * depth)
    model = build("CONV_2D", [x, kernel, b], [y], ("Conv2DOptions", options), 7)
    assert_same(model, [c.codes(rng, type_, tuple(x.shape))], options)


@pytest.mark.parametrize("type_", TYPES)
def test_long_sums(type_: str) -> None:
    """More products than one float32 sum can hold, so that the contraction is cut; 16 bits wrap an int32 sum."""
    rng = np.random.default_rng(7)
    x = c.activation(rng, type_, (1, 3, 3, 700))
    kernel = c.weights(rng, type_, (5, 3, 3, 700), 0)
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    if type_ == "int16":
        options["quantized_bias_type"] = 2
    b = c.bias(rng, x, kernel, 5, {"float32": "float32"}.get(type_, "int32"))
    y = c.result(rng, x, kernel, (1, 3, 3, 5), 6300)
    model = build("CONV_2D", [x, kernel, b], [y], ("Conv2DOptions", options), 8)
    low, high = c.CODES.get(type_, (0, 0))
    assert_same(model, [c.codes(rng, type_, tuple(x.shape))])
    if type_ != "float32":
        assert_same(model, [np.full(x.shape, high, type_)])
        assert_same(model, [np.full(x.shape, low, type_)])


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(30))
def test_depthwise_conv_2d(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, TYPES.index(type_), 1])
    (h, w), (kh, kw), options, out = _window(rng)
    batch, depth, times = int(rng.integers(1, 3)), int(rng.integers(1, 40)), int(rng.choice([1, 1, 2, 5]))
    channels = depth * times
    x = c.activation(rng, type_, (batch, h, w, depth))
    kernel = c.weights(rng, type_, (1, kh, kw, channels), 3, ("int8", "int4") if type_ == "int8" else ("int8",))
    b = c.bias(rng, x, kernel, channels, {"float32": "float32", "int16": "int64"}.get(type_, "int32"))
    y = c.result(rng, x, kernel, (batch, *out, channels), kh * kw)
    inputs = [x, kernel, b] if rng.random() < 0.8 else [x, kernel]
    options["depth_multiplier"] = times
    model = build("DEPTHWISE_CONV_2D", inputs, [y], ("DepthwiseConv2DOptions", options), 6)
    assert_same(model, [c.codes(rng, type_, tuple(x.shape))], options)


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("seed", range(25))
def test_transpose_conv(type_: str, seed: int) -> None:
    rng = np.random.default_rng([seed, TYPES.index(type_), 2])
    kernel_size, stride = rng.integers(1, 5, 2), rng.integers(1, 4, 2)
    padding = int(rng.integers(0, 2))
    large = [int(rng.integers(k if padding else 1, k + 8)) for k in kernel_size]
    small = [_pixels(n, int(k), int(s), 1, padding) for n, k, s in zip(large, kernel_size, stride, strict=True)]
    depth, filters, batch = (int(n) for n in rng.integers(1, 10, 3))
    x = c.activation(rng, type_, (batch, *small, depth))
    w = c.weights(rng, type_, (filters, *(int(k) for k in kernel_size), depth), 0)
    options = {
        "padding": padding,
        "stride_h": int(stride[0]),
        "stride_w": int(stride[1]),
        "fused_activation_function": int(rng.choice(ACTIVATIONS)),
    }
    b = c.bias(rng, x, w, filters, _bias_type(rng, type_, options))
    y = c.result(rng, x, w, (batch, *large, filters), depth * 2)
    shape = T("int32", (4,), value=np.array([batch, *large, filters]) if rng.random() < 0.7 else None)
    inputs = [shape, w, x, b] if rng.random() < 0.7 else [shape, w, x]
    model = build("TRANSPOSE_CONV", inputs, [y], ("TransposeConvOptions", options), 5)
    values = [c.codes(rng, type_, tuple(x.shape))]
    if shape.value is None:
        values.insert(0, np.array([batch, *large, filters], np.int32))
    assert_same(model, values, options)


def test_computed_weights() -> None:
    """Weights and bias that are graph inputs."""
    rng = np.random.default_rng(3)
    options = {"padding": 0, "stride_h": 1, "stride_w": 2, "dilation_h_factor": 1, "dilation_w_factor": 1}
    for type_ in ("float32", "uint8", "int8"):
        x = c.activation(rng, type_, (2, 5, 5, 6))
        w = c.weights(rng, type_, (4, 3, 3, 6), 0)
        b = c.bias(rng, x, w, 4, "float32" if type_ == "float32" else "int32")
        y = c.result(rng, x, w, (2, 5, 3, 4), 54)
        free = [T(t.type, t.shape, t.scale, t.zero_point, t.axis) for t in (w, b)]
        model = build("CONV_2D", [x, *free], [y], ("Conv2DOptions", options))
        assert_same(model, [c.codes(rng, type_, (2, 5, 5, 6)), w.value, b.value.astype(b.type)])


def test_int16_weights_are_read_as_int8() -> None:
    rng = np.random.default_rng(4)
    options = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    x = c.activation(rng, "int16", (1, 4, 4, 3))
    w = T("int16", (4, 2, 2, 3), 0.01, 0, value=c.codes(rng, "int16", (4, 2, 2, 3)))
    b = c.bias(rng, x, w, 4, "int64")
    y = c.result(rng, x, w, (1, 4, 4, 4), 12)
    model = build("CONV_2D", [x, w, b], [y], ("Conv2DOptions", options), 7)
    assert_same(model, [c.codes(rng, "int16", (1, 4, 4, 3))])


STEP = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"w": T("int8", (4, 1, 1, 2), 0.1, value=1)}, "input channels"),
        ({"w": T("int8", (4, 1, 1, 3), [0.1, 0.2, 0.3], 0, 3, value=1)}, "number of weight scales"),
        ({"w": T("int8", (4, 1, 1, 3), 0.1, 5, value=1)}, "zero point"),
        ({"w": T("int8", (4, 1, 1, 3), value=1)}, "no quantization"),
        ({"w": T("int8", (4, 3, 3), 0.1, value=1)}, "number of dimensions"),
        ({"bias": T("int32", (3,), 0.1, value=0)}, "bias length"),
        ({"bias": None}, "is missing"),
        ({"options": {**STEP, "stride_w": 0}}, "does not fit along w"),
        ({"options": {**STEP, "padding": 1}, "w": T("int8", (4, 6, 1, 3), 0.1, value=1)}, "does not fit along h"),
    ],
)
def test_refused(change: dict[str, object], match: str) -> None:
    given: dict[str, object] = {
        "w": T("int8", (4, 1, 1, 3), 0.1, value=1),
        "bias": T("int32", (4,), 0.01, value=0),
        "options": STEP,
        **change,
    }
    x, y = T("int8", (1, 4, 4, 3), 0.1, 0), T("int8", (1, 4, 4, 4), 0.1, 0)
    w, bias, options = given["w"], given["bias"], given["options"]
    if bias is None:
        with pytest.raises(NotImplementedError):  # no form of CONV_2D goes without a bias
            tflq(build("CONV_2D", [x, w, None], [y], ("Conv2DOptions", options)), [np.zeros((1, 4, 4, 3), np.int8)])
        return
    model = build("CONV_2D", [x, w, bias], [y], ("Conv2DOptions", options))
    with pytest.raises(ModelError, match=match):
        tflq(model, [np.zeros((1, 4, 4, 3), np.int8)])


def test_undefined() -> None:
    x, y = T("int16", (1, 4, 4, 3), 0.1, 0), T("int16", (1, 4, 4, 4), 0.1, 0)
    w = T("int8", (4, 1, 1, 3), 0.1, value=1)
    bias = T("int32", (4,), 0.01, value=0)  # read as int64, as quantized_bias_type is not set
    with pytest.raises(UndefinedResultError):
        tflq(build("CONV_2D", [x, w, bias], [y], ("Conv2DOptions", STEP)), [np.zeros((1, 4, 4, 3), np.int16)])
    w, y = T("int8", (1, 1, 1, 3), 0.1, value=1), T("int16", (1, 4, 4, 3), 0.1, 0)
    options = ("DepthwiseConv2DOptions", {**STEP, "depth_multiplier": 2})
    with pytest.raises(UndefinedResultError):
        tflq(build("DEPTHWISE_CONV_2D", [x, w], [y], options), [np.zeros((1, 4, 4, 3), np.int16)])
