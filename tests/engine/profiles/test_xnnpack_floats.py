"""Float operators of XNNPACK whose sums have a promised order, compared with LiteRT's default resolver, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.composites import attention
from support.each import each
from support.graphs import Graph, Op
from support.graphs import build as build_graphs
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, build, litert
from tflq.errors import UnsupportedError

pytestmark = has_xnnpack_profile

Array = np.ndarray[Any, Any]
FUNCTIONS = (0, 0, 1, 2, 3)
#: Numbers whose sums and products are not plain.
STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.2e-38, 2e-30, 3e38], np.float32)
SHARE = (0.0, 0.0, 0.02)


def normal(rng: np.random.Generator, *shape: int, strange: float = 0, finite: bool = False) -> Array:
    """Normal numbers; a part of `strange` of them from STRANGE, or from its finite ones."""
    x = rng.standard_normal(shape).astype(np.float32)
    odd = rng.choice(STRANGE[np.isfinite(STRANGE)] if finite else STRANGE, shape)
    return np.where(rng.random(shape) < strange, odd, x)


def tiny(rng: np.random.Generator, *shape: int) -> Array:
    """Numbers whose products lie around the smallest normal one."""
    return (rng.standard_normal(shape) * 2.0 ** rng.integers(-66, -60, shape)).astype(np.float32)


def check(model: bytes, inputs: list[Array], note: object = "") -> None:
    """Require the bits of LiteRT."""
    assert XNNPACK is not None
    assert_same(run(model, inputs, XNNPACK), litert(model, inputs, "BUILTIN"), str(note))


def constant(value: Array) -> T:
    return T("float32", value.shape, value=value)


def sliding(rng: np.random.Generator, size: Any, kernel: Any) -> tuple[dict[str, Any], tuple[int, int]]:
    """Options of a window, and the output's size."""
    same = rng.random() < 0.5
    stride = rng.integers(1, 3, 2) if rng.random() < 0.5 else np.ones(2, int)
    dilation = rng.integers(1, 3, 2) if (stride == 1).all() and rng.random() < 0.3 else np.ones(2, int)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    out = [-(-n // s) if same else (n - r) // s + 1 for n, s, r in zip(size, stride, reach, strict=True)]
    options = {
        "padding": 0 if same else 1,
        "stride_h": int(stride[0]),
        "stride_w": int(stride[1]),
        "dilation_h_factor": int(dilation[0]),
        "dilation_w_factor": int(dilation[1]),
        "fused_activation_function": int(rng.choice(FUNCTIONS)),
    }
    return options, (int(out[0]), int(out[1]))


@each("seed", range(60))
def test_dense_layers(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    rows, depth, units = (int(n) for n in rng.integers(1, [20, 80, 70]))
    numbers = tiny if seed % 7 == 6 else normal
    x, w = numbers(rng, rows, depth), numbers(rng, units, depth)
    if seed % 3 == 2:
        x = normal(rng, rows, depth, strange=0.02)
    bias = [constant(tiny(rng, units) if numbers is tiny else normal(rng, units, strange=0.1, finite=True))]
    operands = [T("float32", x.shape), constant(w), *bias * (seed % 4 > 0)]
    options = {"fused_activation_function": int(rng.choice(FUNCTIONS))}
    output = [T("float32", (rows, units))]
    check(build("FULLY_CONNECTED", operands, output, ("FullyConnectedOptions", options)), [x], x.shape)


def test_computed_weights_are_left_to_the_kernels_below() -> None:
    rng = np.random.default_rng(2)
    x, w = normal(rng, 3, 20), normal(rng, 5, 20)
    operands = [T("float32", x.shape), T("float32", w.shape)]
    check(build("FULLY_CONNECTED", operands, [T("float32", (3, 5))], ("FullyConnectedOptions", {})), [x, w])


@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"])
def test_unpacked_weights_count_as_constant(op: str) -> None:
    """float16 weights behind a DEQUANTIZE."""
    rng = np.random.default_rng(3)
    x = T("float32", (2, 20) if op == "FULLY_CONNECTED" else (1, 5, 6, 8))
    shape = {"FULLY_CONNECTED": (7, 20), "DEPTHWISE_CONV_2D": (1, 3, 3, 8)}.get(op, (4, 3, 3, 8))
    halves = T("float16", shape, value=normal(rng, *shape).astype(np.float16))
    units = shape[3] if op == "DEPTHWISE_CONV_2D" else shape[0]
    out = T("float32", (2, 7) if op == "FULLY_CONNECTED" else (1, 5, 6, units))
    bias, size = constant(normal(rng, units)), T("int32", (4,), value=np.array([1, 5, 6, units], np.int32))
    inputs = [4, 2, 0, 3] if op == "TRANSPOSE_CONV" else [0, 2, 3]
    steps = {"padding": 0, "stride_h": 1, "stride_w": 1, "depth_multiplier": 1}
    table = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}.get(op, "")
    table = table or {"DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}.get(op, "TransposeConvOptions")
    if op == "FULLY_CONNECTED":
        steps = {}
    elif op != "DEPTHWISE_CONV_2D":
        del steps["depth_multiplier"]
    version = 3 if op == "TRANSPOSE_CONV" else 1
    tensors = [x, halves, T("float32", shape), bias, size, out]
    operators = [Op("DEQUANTIZE", [1], [2], None, 3), Op(op, inputs, [5], (table, steps), version)]
    check(build_graphs(Graph(tensors, [0], [5], operators)), [normal(rng, *x.shape)], op)


@each("op", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"])
@each("weights", ["float32", "float16", "int8", "hybrid"])
@each("bias", ["float32", "float16", "int8"])
def test_weights_and_biases_are_unpacked_each_by_itself(op: str, weights: str, bias: str) -> None:
    """float16 and int8 constants lie behind a DEQUANTIZE; hybrid weights do not."""
    rng = np.random.default_rng(3)
    x = T("float32", (2, 20) if op == "FULLY_CONNECTED" else (1, 5, 6, 8))
    shape = {"FULLY_CONNECTED": (7, 20), "DEPTHWISE_CONV_2D": (1, 3, 3, 8)}.get(op, (4, 3, 3, 8))
    units = shape[3] if op == "DEPTHWISE_CONV_2D" else shape[0]
    tensors = [x, T("float32", (2, 7) if op == "FULLY_CONNECTED" else (1, 5, 6, units))]
    operators = []

    scales: dict[str, Any] = {"int8": 0.01, "hybrid": [0.01] * 8 if op == "DEPTHWISE_CONV_2D" else 0.01}

    def add(kind: str, value: Array) -> int:
        """Add a constant; return the tensor to read."""
        codes = np.clip(np.round(value / 0.01), -127, 127) if kind in scales else value
        stored = "int8" if kind == "hybrid" else kind
        tensors.append(T(stored, value.shape, scales.get(kind), axis=value.ndim - 1, value=codes.astype(stored)))
        if kind in ("float16", "int8"):
            tensors.append(T("float32", value.shape))
            version = 3 if kind == "float16" else 2
            operators.append(Op("DEQUANTIZE", [len(tensors) - 2], [len(tensors) - 1], None, version))
        return len(tensors) - 1

    w, b = add(weights, 0.3 * normal(rng, *shape)), add(bias, 0.3 * normal(rng, units))
    size = add("int32", np.array([1, 5, 6, units])) if op == "TRANSPOSE_CONV" else -1
    steps = {"padding": 0, "stride_h": 1, "stride_w": 1} if op != "FULLY_CONNECTED" else {}
    steps |= {"depth_multiplier": 1} if op == "DEPTHWISE_CONV_2D" else {}
    table = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}.get(op, "")
    table = table or {"DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}.get(op, "TransposeConvOptions")
    version = {"FULLY_CONNECTED": 9, "CONV_2D": 5, "DEPTHWISE_CONV_2D": 6}.get(op, 3) if weights == "hybrid" else 1
    inputs = [size, w, 0, b] if op == "TRANSPOSE_CONV" else [0, w, b]
    operators.append(Op(op, inputs, [1], (table, steps), 3 if op == "TRANSPOSE_CONV" else version))
    model, sample = build_graphs(Graph(tensors, [0], [1], operators)), [normal(rng, *x.shape)]
    if weights == "hybrid" and bias == "float16" and op in ("FULLY_CONNECTED", "CONV_2D"):
        with pytest.raises(RuntimeError, match="failed to prepare"):
            litert(model, sample, "BUILTIN")
        with pytest.raises(UnsupportedError, match="biases of float32"):
            run(model, sample, "litert-xnnpack")
    else:
        check(model, sample, (op, weights, bias))


@each("seed", range(60))
def test_convolutions(seed: int) -> None:
    rng = np.random.default_rng([4, seed])
    kernel = (1, 1) if seed % 4 == 0 else tuple(int(n) for n in rng.integers(1, 4, 2))
    size = tuple(int(n) + 2 * k for n, k in zip(rng.integers(0, 12, 2), kernel, strict=True))
    n, depth, units = int(rng.integers(1, 4)), int(rng.integers(1, 40)), int(rng.integers(1, 40))
    groups = 1
    if seed % 5 == 1:  # as many filters as channels, one a group
        groups, units, depth = units, units, 1
    elif seed % 5 == 2:
        groups = 3
        units *= groups
    options, out = sliding(rng, size, kernel)
    x = normal(rng, n, *size, depth * groups, strange=SHARE[seed % 3], finite=units == groups)
    operands = [T("float32", x.shape), constant(normal(rng, units, *kernel, depth)), constant(normal(rng, units))]
    model = build("CONV_2D", operands, [T("float32", (n, *out, units))], ("Conv2DOptions", options))
    check(model, [x], (x.shape, kernel, units, options))


@each("seed", range(60))
def test_depthwise_convolutions(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    kernel = tuple(int(n) for n in rng.integers(1, 4 if seed % 6 else 8, 2))
    size = tuple(int(n) + 2 * k for n, k in zip(rng.integers(0, 12, 2), kernel, strict=True))
    n, depth, times = int(rng.integers(1, 4)), int(rng.integers(1, 40)), int(rng.choice([1, 1, 1, 2, 3]))
    options, out = sliding(rng, size, kernel)
    if seed % 10 == 9:
        kernel, options, out = (1, 1), {**options, "stride_h": 1, "stride_w": 1}, (size[0], size[1])
    options["depth_multiplier"] = times
    x = normal(rng, n, *size, depth, strange=0.02 * (seed % 3 == 2), finite=True)
    units = depth * times
    operands = [T("float32", x.shape), constant(normal(rng, 1, *kernel, units)), constant(normal(rng, units))]
    model = build("DEPTHWISE_CONV_2D", operands, [T("float32", (n, *out, units))], ("DepthwiseConv2DOptions", options))
    check(model, [x], (x.shape, kernel, options))


@each("seed", range(40))
def test_transposed_convolutions(seed: int) -> None:
    rng = np.random.default_rng([6, seed])
    stride, kernel = rng.integers(1, 4, 2), rng.integers(1, 5, 2)
    same = bool(rng.random() < 0.5) and bool((kernel >= stride).all())
    n, height, width, depth = (int(v) for v in rng.integers(1, [3, 6, 6, 12]))
    units = int(rng.integers(1, 20))
    size = np.array([height, width]) * stride if same else (np.array([height, width]) - 1) * stride + kernel
    shape = (n, int(size[0]), int(size[1]), units)
    x = normal(rng, n, height, width, depth, strange=SHARE[seed % 3])
    w = constant(normal(rng, units, int(kernel[0]), int(kernel[1]), depth))
    target = T("int32", (4,), value=np.array(shape, np.int32))
    bias = [constant(normal(rng, units))] * (seed % 3 > 0)
    options = {"padding": 1 - same, "stride_h": int(stride[0]), "stride_w": int(stride[1])}
    operands = [target, w, T("float32", x.shape), *bias]
    model = build("TRANSPOSE_CONV", operands, [T("float32", shape)], ("TransposeConvOptions", options), 3)
    check(model, [x], (x.shape, kernel, options))


@each("seed", range(40))
def test_matrix_products(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    rows, depth, columns = (int(n) for n in rng.integers(1, [20, 60, 50]))
    adjoint = [bool(v) for v in rng.integers(0, 2, 2)]
    leading = [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((4,), (4,)), ((), ())][seed % 4]
    x = normal(rng, *leading[0], *((depth, rows) if adjoint[0] else (rows, depth)), strange=SHARE[seed % 3])
    y = normal(rng, *leading[1], *((columns, depth) if adjoint[1] else (depth, columns)))
    out = T("float32", (*np.broadcast_shapes(*leading), rows, columns))
    right = constant(y) if seed % 5 == 0 else T("float32", y.shape)
    options = {"adj_x": adjoint[0], "adj_y": adjoint[1]}
    model = build("BATCH_MATMUL", [T("float32", x.shape), right], [out], ("BatchMatMulOptions", options), 2)
    check(model, [x] if seed % 5 == 0 else [x, y], (x.shape, y.shape, adjoint))


@each("seed", range(60))
def test_softmax(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    rows, depth = int(rng.integers(1, 9)), int(rng.integers(1, 40 if seed % 2 else 400))
    x = normal(rng, rows, depth, strange=0.005 * (seed % 5 == 4)) * np.float32(rng.choice([1, 10, 60]))
    whole = T("float32", x.shape)
    beta = float(rng.choice([1, 1, 1, 0.3]))
    check(build("SOFTMAX", [whole], [whole], ("SoftmaxOptions", {"beta": beta})), [x], (x.shape, beta))


@each("seed", range(40))
def test_averages(seed: int) -> None:
    rng = np.random.default_rng([9, seed])
    kernel = tuple(int(n) for n in rng.integers(1, 6, 2))
    size = tuple(int(n) + k for n, k in zip(rng.integers(0, 9, 2), kernel, strict=True))
    n, depth = int(rng.integers(1, 3)), int(rng.integers(1, 40))
    options, _ = sliding(rng, size, kernel)
    steps = {key: options[key] for key in ("padding", "stride_h", "stride_w", "fused_activation_function")}
    spans = [(s, k, options[f"stride_{letter}"]) for s, k, letter in zip(size, kernel, "hw", strict=True)]
    out = [-(-s // step) if steps["padding"] == 0 else (s - k) // step + 1 for s, k, step in spans]
    x = normal(rng, n, *size, depth, strange=SHARE[seed % 3])
    steps |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    model = build(
        "AVERAGE_POOL_2D", [T("float32", x.shape)], [T("float32", (n, *out, depth))], ("Pool2DOptions", steps)
    )
    check(model, [x], (x.shape, steps))


@each("seed", range(30))
def test_resized_images(seed: int) -> None:
    rng = np.random.default_rng([10, seed])
    n, height, width, depth = (int(v) for v in rng.integers(1, [3, 9, 9, 12]))
    size = rng.integers(1, 17, 2).astype(np.int32)
    align, half = [(False, False), (True, False), (False, True)][seed % 3]
    x = normal(rng, n, height, width, depth, strange=SHARE[seed % 2 * 2])
    operands = [T("float32", x.shape), T("int32", (2,), value=size)]
    options = {"align_corners": align, "half_pixel_centers": half}
    output = [T("float32", (n, int(size[0]), int(size[1]), depth))]
    check(build("RESIZE_BILINEAR", operands, output, ("ResizeBilinearOptions", options), 3), [x], (x.shape, size))


@each("op", ["MEAN", "SUM"])
@each("seed", range(40))
def test_reductions(op: str, seed: int) -> None:
    rng = np.random.default_rng([13, seed])
    shape = tuple(int(n) for n in rng.integers(1, [4, 9, 9, 90 if seed % 2 else 500])[-int(rng.integers(1, 5)) :])
    axes = sorted(rng.choice(len(shape), int(rng.integers(1, len(shape) + 1)), replace=False).tolist())
    keep = bool(rng.random() < 0.5)
    x = normal(rng, *shape, strange=0.01 * (seed % 5 == 4))
    made = np.sum(np.empty(shape), axis=tuple(axes), keepdims=keep).shape
    operands = [T("float32", shape), T("int32", (len(axes),), value=np.array(axes, np.int32))]
    model = build(op, operands, [T("float32", made)], ("ReducerOptions", {"keep_dims": keep}), 2)
    check(model, [x], (op, shape, axes))


@each("heads", [1, 2, 6])
@each("attributes", [{"scale": 0.25}, {}, {"scale": "none"}, {"scale": 0.1, "logit_cap": 1.5}, {"logit_cap": 50.0}])
@each("is_masked", [True, False])
def test_attention(heads: int, attributes: Any, is_masked: bool) -> None:
    """Keys of one head, of groups and of all heads; never the decomposition."""
    rng = np.random.default_rng([11, heads])
    query, key = (1 if heads == 1 else 2, 5, 6, 16), (1 if heads == 1 else 2, 37, heads, 16)
    mask = (1, 1, 5, 37) if is_masked else None
    inputs = [normal(rng, *query), normal(rng, *key), normal(rng, *key)]
    if mask:
        inputs.append(np.where(rng.random(mask) < 0.3, -np.inf, normal(rng, *mask)).astype(np.float32))
    check(attention(query, key, mask, attributes), inputs, (heads, attributes))


def test_other_lengths_run_the_decomposition() -> None:
    rng = np.random.default_rng(12)
    query, key = (1, 5, 2, 16), (1, 9, 2, 16)
    inputs = [normal(rng, *query), normal(rng, *key), normal(rng, *key), normal(rng, 1, 1, 5, 8)]
    check(attention(query, key, (1, 1, 5, 8), {}), inputs)


@each("op", ["MEAN", "SUM"])
@each("square", ["MUL", "SQUARE", "MUL and RELU"])
@each("axes", [[2], [1], [0, 2]])
def test_sums_of_squares(op: str, square: str, axes: list[int]) -> None:
    """The squares are an output, too: the sum is made in one go all the same."""
    rng = np.random.default_rng(14)
    whole, made = T("float32", (3, 7, 101)), tuple(n for i, n in enumerate((3, 7, 101)) if i not in axes)
    tensors = [whole, T("int32", (len(axes),), value=np.array(axes, np.int32)), whole, T("float32", made)]
    function = {"fused_activation_function": int("RELU" in square)}
    first = Op("SQUARE", [0], [2]) if square == "SQUARE" else Op("MUL", [0, 0], [2], ("MulOptions", function))
    second = Op(op, [2, 1], [3], ("ReducerOptions", {"keep_dims": False}))
    check(build_graphs(Graph(tensors, [0], [2, 3], [first, second])), [normal(rng, 3, 7, 101)], (op, square, axes))
