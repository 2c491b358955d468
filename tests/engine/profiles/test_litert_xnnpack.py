"""The profile `litert-xnnpack` against LiteRT with its default delegate: random single operators, bit by bit.

Every operator is drawn on both sides of the rule by which XNNPACK takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.contracting import codes
from support.live import LITERT, hold, remote
from support.processors import own
from support.running import assert_same, run
from support.single_op import Array, T, build, litert

pytestmark = pytest.mark.slow

#: That of this processor, if there is one.
PROFILE = own("litert-xnnpack")

Model = tuple[bytes, list[T]]
DRAWS = 40
TYPES = ("uint8", "int8")


def scale(rng: np.random.Generator, low: float = -9, high: float = -3) -> np.float32:
    """A scale; a power of two one time in three, where ties live."""
    exponent = rng.uniform(low, high)
    return np.float32(2.0 ** (round(exponent) if rng.random() < 0.33 else exponent))


def tensor(rng: np.random.Generator, type_: str, shape: tuple[int, ...], like: np.float32 | None = None) -> T:
    """A quantized activation; `like` is a scale that its own is near to, or equals."""
    low, high = (0, 255) if type_ == "uint8" else (-128, 127)
    near = scale(rng) if like is None else np.float32(like * rng.choice([1, 0.5, 2, rng.uniform(0.1, 4)]))
    return T(type_, shape, near, int(rng.choice([low, high, *rng.integers(low, high + 1, 4)])))


def filters(rng: np.random.Generator, type_: str, shape: tuple[int, ...], axis: int) -> T:
    """Weights per tensor or, if signed, per channel. uint8 ones may name another dimension: XNNPACK leaves these."""
    value = codes(rng, type_, shape)
    if type_ == "uint8":
        return T(type_, shape, scale(rng), int(rng.integers(0, 256)), int(rng.choice([0, axis])), value)
    if rng.random() < 0.6:
        return T(type_, shape, [scale(rng) for _ in range(shape[axis])], 0, axis, value)
    return T(type_, shape, scale(rng), 0, value=value)


def bias(rng: np.random.Generator, x: T, w: T, channels: int) -> T:
    """A constant bias whose scale is the product of the others."""
    product = np.float32(x.scale) * np.atleast_1d(np.asarray(w.scale, np.float32))
    value = rng.integers(-3000, 3000, channels).astype(np.int32)
    return T("int32", (channels,), product if len(product) > 1 else product[0], 0, value=value)


def output(rng: np.random.Generator, x: T, w: T, shape: tuple[int, ...], depth: int) -> T:
    """An output whose scale leaves most results inside."""
    near = np.float32(x.scale) * np.float32(np.max(w.scale)) * np.float32(60 * np.sqrt(depth))
    if rng.random() < 0.5:
        near = np.float32(2.0 ** np.round(np.log2(near)))
    return T(x.type, shape, near, int(rng.integers(0, 256)) - (128 if x.type == "int8" else 0))


def activation(rng: np.random.Generator) -> int:
    """None most of the time; RELU, RELU_N1_TO_1, RELU6."""
    return int(rng.choice([0, 0, 0, 1, 2, 3]))


def conv(rng: np.random.Generator, type_: str) -> Model:
    c, o = int(rng.integers(1, 10)), int(rng.integers(1, 20))
    x, w = tensor(rng, type_, (1, 6, 5, c)), filters(rng, type_, (o, 3, 2, c), 0)
    y = output(rng, x, w, (1, 6, 5, o), 6 * c)
    options = {
        "padding": 0,
        "stride_w": 1,
        "stride_h": 1,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "fused_activation_function": activation(rng),
    }
    return build("CONV_2D", [x, w, bias(rng, x, w, o)], [y], ("Conv2DOptions", options), 3), [x]


def depthwise(rng: np.random.Generator, type_: str) -> Model:
    c = int(rng.integers(1, 24))
    x, w = tensor(rng, type_, (1, 6, 5, c)), filters(rng, type_, (1, 3, 3, c), 3)
    y = output(rng, x, w, (1, 6, 5, c), 9)
    options = {
        "padding": 0,
        "stride_w": 1,
        "stride_h": 1,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "depth_multiplier": 1,
        "fused_activation_function": activation(rng),
    }
    return build("DEPTHWISE_CONV_2D", [x, w, bias(rng, x, w, c)], [y], ("DepthwiseConv2DOptions", options), 3), [x]


def dense(rng: np.random.Generator, type_: str) -> Model:
    k, o = int(rng.integers(1, 40)), int(rng.integers(1, 20))
    x, w = tensor(rng, type_, (int(rng.integers(1, 5)), k)), filters(rng, type_, (o, k), 0)
    w = T(w.type, w.shape, w.scale, w.zero_point, 0, w.value)
    y = output(rng, x, w, (x.shape[0], o), k)
    inputs = [x, w, bias(rng, x, w, o) if rng.random() < 0.7 else None]
    options = {"fused_activation_function": activation(rng)}
    return build("FULLY_CONNECTED", inputs, [y], ("FullyConnectedOptions", options), 5 if type_ == "int8" else 1), [x]


def transposed(rng: np.random.Generator, type_: str) -> Model:
    c, o, step = int(rng.integers(1, 6)), int(rng.integers(1, 12)), int(rng.integers(1, 4))
    shape = (1, 4 * step, 3 * step, o)
    x, w = tensor(rng, type_, (1, 4, 3, c)), filters(rng, type_, (o, 2, 2, c), 0)
    y = output(rng, x, w, shape, 2 * c)
    size = T("int32", (4,), value=np.array(shape, np.int32))
    options = {"padding": 0, "stride_w": step, "stride_h": step, "fused_activation_function": 0}
    return build("TRANSPOSE_CONV", [size, w, x, bias(rng, x, w, o)], [y], ("TransposeConvOptions", options), 3), [x]


def pointwise(op: str, table: str) -> Callable[[np.random.Generator, str], Model]:
    def make(rng: np.random.Generator, type_: str) -> Model:
        a = tensor(rng, type_, (3, 1, 9))
        b = tensor(rng, type_, (3, 5, 9) if rng.random() < 0.5 else (9,), a.scale)
        shape = tuple(np.broadcast_shapes(a.shape, b.shape))
        near = np.float32(a.scale * b.scale * 128) if op == "MUL" else a.scale
        y = tensor(rng, type_, shape, near)
        return build(op, [a, b], [y], (table, {"fused_activation_function": activation(rng)}), 2), [a, b]

    return make


def leaky(rng: np.random.Generator, type_: str) -> Model:
    x = tensor(rng, type_, (4, 50))
    alpha = float(rng.choice([0.1, -0.3, 0.5, 1e-3, 3.0, rng.uniform(-2, 2)]))
    return build(
        "LEAKY_RELU", [x], [tensor(rng, type_, (4, 50), x.scale)], ("LeakyReluOptions", {"alpha": alpha}), 2
    ), [x]


def requantize(rng: np.random.Generator, type_: str) -> Model:
    x = tensor(rng, type_, (4, 50))
    y = tensor(rng, str(rng.choice(TYPES)), (4, 50), np.float32(x.scale * rng.choice([1, 1, 1000, 0.001])))
    return build("QUANTIZE", [x], [y], None, 2), [x]


def quantize(rng: np.random.Generator, type_: str) -> Model:
    x = T("float32", (3, 37))
    return build("QUANTIZE", [x], [tensor(rng, type_, (3, 37))], None, 2), [x]


def dequantize(rng: np.random.Generator, type_: str) -> Model:
    x = tensor(rng, type_, (3, 37))
    return build("DEQUANTIZE", [x], [T("float32", (3, 37))], None, 2), [x]


def reduced(op: str) -> Callable[[np.random.Generator, str], Model]:
    def make(rng: np.random.Generator, type_: str) -> Model:
        shape, keep = (2, 5, 4, 19), bool(rng.random() < 0.5)
        axes = [[1, 2], [3], [1], [0, 2], [-1, 1]][int(rng.integers(0, 5))]
        x = tensor(rng, type_, shape)
        made = np.sum(np.empty(shape), axis=tuple(axes), keepdims=keep).shape
        y = tensor(rng, type_, tuple(made), x.scale)
        inputs = [x, T("int32", (len(axes),), value=np.array(axes, np.int32))]
        return build(op, inputs, [y], ("ReducerOptions", {"keep_dims": keep}), 2), [x]

    return make


def resize(rng: np.random.Generator, type_: str) -> Model:
    x, size = tensor(rng, type_, (1, 5, 7, 3)), rng.integers(1, 17, 2).astype(np.int32)
    y = T(type_, (1, int(size[0]), int(size[1]), 3), x.scale, x.zero_point)
    align, half = [(False, False), (True, False), (False, True)][int(rng.integers(0, 3))]
    options = {"align_corners": align, "half_pixel_centers": half}
    return build("RESIZE_BILINEAR", [x, T("int32", (2,), value=size)], [y], ("ResizeBilinearOptions", options), 3), [x]


def hybrid_dense(rng: np.random.Generator, type_: str) -> Model:
    k, o = int(rng.integers(1, 40)), int(rng.integers(1, 20))
    x, w = T("float32", (int(rng.integers(1, 5)), k)), filters(rng, "int8", (o, k), 0)
    inputs = [x, w, T("float32", (o,), value=rng.standard_normal(o).astype(np.float32))]
    options = {"fused_activation_function": activation(rng), "asymmetric_quantize_inputs": bool(rng.random() < 0.5)}
    return build("FULLY_CONNECTED", inputs, [T("float32", (x.shape[0], o))], ("FullyConnectedOptions", options), 9), [x]


def hybrid_conv(rng: np.random.Generator, type_: str) -> Model:
    c, o = int(rng.integers(1, 10)), int(rng.integers(1, 20))
    x, w = T("float32", (2, 6, 5, c)), filters(rng, "int8", (o, 3, 2, c), 0)
    inputs = [x, w, T("float32", (o,), value=rng.standard_normal(o).astype(np.float32))]
    options = {
        "padding": 0,
        "stride_w": 1,
        "stride_h": 1,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
        "fused_activation_function": activation(rng),
    }
    return build("CONV_2D", inputs, [T("float32", (2, 6, 5, o))], ("Conv2DOptions", options), 5), [x]


def matmul(rng: np.random.Generator, type_: str) -> Model:
    """int8 only: uint8 has no BATCH_MATMUL."""
    rows, k, n, adjoint = *(int(v) for v in rng.integers(1, 20, 3)), bool(rng.random() < 0.5)
    x = tensor(rng, "int8", (3, 1, rows, k))
    y = T("int8", (2, n, k) if adjoint else (2, k, n), scale(rng), 0)
    out = output(rng, x, y, (3, 2, rows, n), k)
    return build("BATCH_MATMUL", [x, y], [out], ("BatchMatMulOptions", {"adj_x": False, "adj_y": adjoint}), 4), [x, y]


def hybrid_matmul(rng: np.random.Generator, type_: str) -> Model:
    rows, k, n, adjoint = *(int(v) for v in rng.integers(1, 20, 3)), bool(rng.random() < 0.5)
    shape = (k, rows) if adjoint else (rows, k)
    x = T("float32", (3, 1, *shape))
    y = T("int8", (2, k, n), scale(rng), 0, value=codes(rng, "int8", (2, k, n)))
    options = {"adj_x": adjoint, "adj_y": False, "asymmetric_quantize_inputs": bool(rng.random() < 0.5)}
    return build("BATCH_MATMUL", [x, y], [T("float32", (3, 2, rows, n))], ("BatchMatMulOptions", options), 4), [x]


def hybrid_transposed(rng: np.random.Generator, type_: str) -> Model:
    c, o, step = int(rng.integers(1, 6)), int(rng.integers(1, 12)), int(rng.integers(1, 4))
    shape = (2, 4 * step, 3 * step, o)
    x, w = T("float32", (2, 4, 3, c)), filters(rng, "int8", (o, 3, 3, c), 0)
    size = T("int32", (4,), value=np.array(shape, np.int32))
    added = T("float32", (o,), value=rng.standard_normal(o).astype(np.float32))
    options = {"padding": 0, "stride_w": step, "stride_h": step, "fused_activation_function": activation(rng)}
    return build("TRANSPOSE_CONV", [size, w, x, added], [T("float32", shape)], ("TransposeConvOptions", options), 5), [
        x
    ]


#: Where float arithmetic has edges: zeros, subnormals, the smallest normal numbers, infinities, NaN.
EDGES = np.array(
    [
        0,
        -0.0,
        1e-45,
        -1e-45,
        1e-40,
        -1e-40,
        2**-126,
        -(2**-126),
        1.5e-38,
        1e-20,
        0.1,
        -0.5,
        2,
        -2.5,
        3e38,
        np.inf,
        -np.inf,
        np.nan,
    ],
    np.float32,
)
FUSING = ("ADD", "SUB", "MUL", "DIV")
POINTWISE: dict[str, tuple[str, dict[str, Any]] | None] = {
    **{op: (f"{op.title()}Options", {}) for op in FUSING},
    "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.3}),
    **dict.fromkeys(("SQUARED_DIFFERENCE", "NEG", "FLOOR", "CEIL", "SQUARE", "RELU", "RELU6", "RELU_N1_TO_1")),
}


@pytest.mark.parametrize(("op", "function"), [(op, f) for op in POINTWISE for f in range(4 if op in FUSING else 1)])
def test_edges_of_floats(op: str, function: int) -> None:
    options = POINTWISE[op]
    if options and function:
        options = (options[0], {"fused_activation_function": function})
    pair = np.meshgrid(EDGES, EDGES) if op in (*FUSING, "SQUARED_DIFFERENCE") else [EDGES]
    operands = [T("float32", pair[0].shape) for _ in pair]
    model = build(op, operands, [T("float32", pair[0].shape)], options, 1)
    assert_same(run(model, pair, PROFILE), litert(model, pair, "BUILTIN"), f"{op} {function}")


@pytest.mark.parametrize("slope", [0.3, -0.3, 1e-10])
def test_prelu_at_the_edges_of_floats(slope: float) -> None:
    values = EDGES[:, None]
    x, alpha = T("float32", values.shape), T("float32", (1,), value=np.array([slope], np.float32))
    model = build("PRELU", [x, alpha], [x], None, 1)
    assert_same(run(model, [values], PROFILE), litert(model, [values], "BUILTIN"), "PRELU")


def test_a_computed_output_shape_is_left_to_the_kernels_below() -> None:
    """A TRANSPOSE_CONV whose output shape is fed is not delegated: its codes are those of litert-opt."""
    rng = np.random.default_rng(3)
    x, w = tensor(rng, "uint8", (2, 3, 6, 8)), filters(rng, "uint8", (3, 3, 1, 8), 0)
    y = output(rng, x, w, (2, 3, 6, 3), 24)
    options = {"padding": 0, "stride_w": 1, "stride_h": 1, "fused_activation_function": 0}
    model = build("TRANSPOSE_CONV", [T("int32", (4,)), w, x], [y], ("TransposeConvOptions", options), 1)
    inputs = [np.array(y.shape, np.int32), codes(rng, "uint8", (2, 3, 6, 8))]
    assert_same(run(model, inputs, PROFILE), litert(model, inputs, "BUILTIN"), "TRANSPOSE_CONV")


MAKERS: dict[str, Callable[[np.random.Generator, str], Model]] = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": dense,
    "TRANSPOSE_CONV": transposed,
    "ADD": pointwise("ADD", "AddOptions"),
    "SUB": pointwise("SUB", "SubOptions"),
    "MUL": pointwise("MUL", "MulOptions"),
    "LEAKY_RELU": leaky,
    "QUANTIZE integers": requantize,
    "QUANTIZE floats": quantize,
    "DEQUANTIZE": dequantize,
    "MEAN": reduced("MEAN"),
    "SUM": reduced("SUM"),
    "RESIZE_BILINEAR": resize,
    "FULLY_CONNECTED hybrid": hybrid_dense,
    "CONV_2D hybrid": hybrid_conv,
    "BATCH_MATMUL": matmul,
    "BATCH_MATMUL hybrid": hybrid_matmul,
    "TRANSPOSE_CONV hybrid": hybrid_transposed,
}


def values(rng: np.random.Generator, tensor: T) -> Array:
    """Random codes, or floats of which many lie half way between codes."""
    if tensor.type != "float32":
        return codes(rng, tensor.type, tuple(tensor.shape))
    x: Array = rng.standard_normal(tuple(tensor.shape)).astype(np.float32)
    return np.where(rng.random(x.shape) < 0.3, np.round(x * 64) / np.float32(64), x)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", MAKERS)
def test_live(name: str, type_: str) -> None:
    rng = np.random.default_rng([*name.encode(), len(type_)])
    for draw in range(DRAWS):
        model, operands = MAKERS[name](rng, type_)
        inputs: list[Any] = [values(rng, operand) for operand in operands]
        assert_same(run(model, inputs, PROFILE), litert(model, inputs, "BUILTIN"), f"{name} {type_} {draw}")


def test_random_operators() -> None:
    """Any operator that the profile claims, drawn as for fuzzing."""
    runtime = remote("", LITERT, "BUILTIN")
    found = hold(PROFILE, runtime, 21, 300, ("exact", "exact on the same libm"))
    runtime.close()
    assert not found.differing, found.differing[0]
    assert found.same > 200
