"""One step of a graph that is drawn: an operator on tensors that are there, and its constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphfuzz.graph import FUSED, Graph, NotDrawnError, Shape, quantized
from tflq.typing import Array

#: Versions of operators: of 8 bits, of 16 bits; others have version 1.
_VERSIONS = {"CONV_2D": (3, 4), "DEPTHWISE_CONV_2D": (3, 5), "FULLY_CONNECTED": (4, 7), "TRANSPOSE_CONV": (3, 4)}
_HYBRID = {"CONV_2D": 5, "DEPTHWISE_CONV_2D": 6, "FULLY_CONNECTED": 9, "TRANSPOSE_CONV": 3}


def float_constant(g: Graph, values: Array) -> int:
    """Add floats: as they are, or behind DEQUANTIZE of float16 or int8; or take those of another operator."""
    shape = values.shape
    if shape in g.shared and g.toss(0.3):
        return g.shared[shape]
    form = g.choose("float32", "float32", "float16", "float16", "int8", "channels") if shape else "float32"
    if form == "float32":
        tensor = g.constant(values, "float32")
    elif form == "float16":
        tensor = _widen(g, g.constant(values, "float16"), 3)
    else:
        axis = g.choose(0, len(shape) - 1)
        scales = g.random.uniform(0.005, 0.05, shape[axis] if form == "channels" and len(shape) > 1 else 1)
        zero_point = 0 if len(scales) > 1 else g.choose(0, 0, 3, -7)
        codes = np.clip(np.round(values * 40), -127, 127)
        tensor = _widen(g, g.constant(codes, "int8", quantized(scales, zero_point, axis)), 2 if len(scales) == 1 else 5)
    g.shared = {**g.shared, shape: tensor}
    return tensor


def _widen(g: Graph, tensor: int, version: int) -> int:
    return g.operate("DEQUANTIZE", [tensor], version=version, is_activation=False)[0]


def weights(g: Graph, x: int, shape: Shape, axis: int) -> tuple[int, bool]:
    """Add weights for an operator on `x`; return them, and whether they make it hybrid."""
    kind, count = g.kind(x), shape[axis]
    if kind == "float32" and g.toss(0.5):
        return float_constant(g, g.random.normal(0, 0.5, shape)), False
    if kind == "uint8":
        codes = g.random.integers(0, 256, shape)
        return g.constant(codes, kind, quantized(g.random.uniform(0.002, 0.02), g.number(1, 255))), False
    scales = g.random.uniform(0.002, 0.02, count if g.toss(0.7) else 1)
    tensor = g.constant(g.random.integers(-127, 128, shape), "int8", quantized(scales, 0, axis))
    return tensor, kind == "float32"


def bias(g: Graph, x: int, w: int, count: int) -> int:
    """Add a bias; -1 if there is none."""
    if g.toss(0.15):
        return -1
    q, by = g.quantization(x), g.quantization(w)
    if q is None or by is None:
        return float_constant(g, g.random.normal(0, 0.3, count))
    scales = np.float32(q.scale[0]) * by.scale
    wide = g.kind(x) == "int16"
    reach = 50_000 if wide else 3000
    return g.constant(g.random.integers(-reach, reach, count), "int64" if wide else "int32", quantized(scales))


def _version(name: str, kind: str, hybrid: bool) -> int:
    if hybrid:
        return _HYBRID[name]
    eight, sixteen = _VERSIONS[name]
    return {"int8": eight, "int16": sixteen}.get(kind, 1 if name != "TRANSPOSE_CONV" else 3)


def _multiply(g: Graph, name: str, x: int, shape: Shape, axis: int, options: Any, before: Sequence[int] = ()) -> None:
    """Append an operator with weights and a bias."""
    w, hybrid = weights(g, x, shape, axis)
    b = bias(g, x, w, shape[axis])
    inputs = [*before, w, x, b] if before else [x, w, b]
    kind = g.kind(x)
    g.operate(name, inputs, options, kind, g.draw_quantization(kind), _version(name, kind, hybrid))


def _window(g: Graph) -> dict[str, Any]:
    return {"padding": g.choose(0, 1), "stride_w": g.choose(1, 1, 2, 3), "stride_h": g.choose(1, 1, 2, 3)}


def convolution(g: Graph) -> None:
    """CONV_2D."""
    x = g.pick(4)
    shape = (g.number(1, 9), g.choose(1, 1, 2, 3, 5), g.choose(1, 1, 2, 3), g.shape(x)[3])
    dilation = (1, 1) if g.toss(0.75) else (g.choose(1, 2), g.choose(1, 2, 3))
    options = {**_window(g), "dilation_w_factor": dilation[0], "dilation_h_factor": dilation[1]}
    _multiply(g, "CONV_2D", x, shape, 0, ("Conv2DOptions", {**options, "fused_activation_function": g.choose(*FUSED)}))


def depthwise(g: Graph) -> None:
    """DEPTHWISE_CONV_2D."""
    x, times, stride = g.pick(4), g.choose(1, 1, 1, 2, 3), g.choose(1, 1, 2)
    shape = (1, g.choose(1, 2, 3, 3, 5), g.choose(1, 2, 3, 3, 5), g.shape(x)[3] * times)
    options = {**_window(g), "stride_w": stride, "stride_h": stride, "depth_multiplier": times}
    options |= {"dilation_w_factor": 1, "dilation_h_factor": 1, "fused_activation_function": g.choose(*FUSED)}
    _multiply(g, "DEPTHWISE_CONV_2D", x, shape, 3, ("DepthwiseConv2DOptions", options))


def dense(g: Graph) -> None:
    """FULLY_CONNECTED."""
    x = g.pick()
    shape = g.shape(x) or (1,)
    depth = shape[-1] if g.toss(0.7) else int(np.prod(shape[1:]))
    options = {"keep_num_dims": g.toss(0.5), "asymmetric_quantize_inputs": g.toss(0.3)}
    options |= {"fused_activation_function": g.choose(*FUSED)}
    _multiply(g, "FULLY_CONNECTED", x, (g.number(1, 9), max(1, depth)), 0, ("FullyConnectedOptions", options))


def transposed(g: Graph) -> None:
    """TRANSPOSE_CONV."""
    x, kernel, stride, padding = g.pick(4), (g.choose(1, 2, 3, 4), g.choose(2, 3)), g.choose(1, 2, 2), g.choose(0, 1)
    n, *size, depth = g.shape(x)
    units = g.number(1, 5)
    reach = [s * stride if padding == 0 else (s - 1) * stride + k for s, k in zip(size, kernel, strict=True)]
    target = g.constant([n, *reach, units], "int32")
    options = {"padding": padding, "stride_w": stride, "stride_h": stride}
    options |= {"fused_activation_function": g.choose(0, 0, 1, 3)}
    _multiply(g, "TRANSPOSE_CONV", x, (units, *kernel, depth), 0, ("TransposeConvOptions", options), [target])


def matrix_product(g: Graph) -> None:
    """BATCH_MATMUL."""
    x = g.pick()
    kind, shape, adjoint, n = g.kind(x), g.shape(x), g.toss(0.5), g.number(1, 7)
    if kind == "uint8" or len(shape) < 2:
        raise NotDrawnError
    wanted = (*(shape[:-2] if g.toss(0.6) else ()), *((n, shape[-1]) if adjoint else (shape[-1], n)))
    alike = g.alike(x, wanted)
    if alike and g.toss(0.5):
        y = g.choose(*alike)
    elif kind == "float32" and g.toss(0.6):
        y = float_constant(g, g.random.normal(0, 1, wanted))
    else:
        scale = quantized(g.random.uniform(0.004, 0.02)) if kind != "int16" else g.draw_quantization(kind)
        y = g.constant(
            g.draw("int8" if kind == "float32" else kind, wanted), "int16" if kind == "int16" else "int8", scale
        )
    options = {"adj_x": False, "adj_y": adjoint, "asymmetric_quantize_inputs": g.toss(0.3)}
    version = {"int8": 2, "int16": 3}.get(kind, 1 if g.kind(y) == "float32" else 4)
    g.operate("BATCH_MATMUL", [x, y], ("BatchMatMulOptions", options), kind, g.draw_quantization(kind), version)


def pair(g: Graph) -> None:
    """ADD and others of two operands, which may be the same or broadcast."""
    x = g.pick()
    kind, shape = g.kind(x), g.shape(x)
    name = g.choose("ADD", "ADD", "MUL", "MUL", "SUB", "DIV", "MINIMUM", "MAXIMUM", "SQUARED_DIFFERENCE")
    if name == "DIV" and kind not in ("float32", "uint8"):
        raise NotDrawnError
    form = g.random.random()
    part = tuple(n if g.toss(0.5) else 1 for n in shape)[g.number(0, len(shape) + 1) :] if form > 0.6 else shape
    if form < 0.5:
        y = x if form < 0.15 else g.choose(*g.alike(x))
    else:
        y = float_constant(g, g.random.normal(0, 1, part)) if kind == "float32" else -1
        y = g.constant(g.draw(kind, part), kind, g.draw_quantization(kind)) if y < 0 else y
    options = {"fused_activation_function": g.choose(*FUSED)}
    options |= {"pot_scale_int16": False} if kind == "int16" and name in ("ADD", "SUB") else {}
    tables = {"ADD": "AddOptions", "MUL": "MulOptions", "SUB": "SubOptions", "DIV": "DivOptions"}
    keeps = name in ("MINIMUM", "MAXIMUM") and g.toss(0.8)
    scale = g.quantization(x) if keeps else g.draw_quantization(kind)
    version = {"int8": 2, "int16": {"ADD": 3, "SUB": 5, "MUL": 4}.get(name, 2)}.get(kind, 1)
    inputs = [x, y] if g.toss(0.7) else [y, x]
    g.operate(name, inputs, (tables[name], options) if name in tables else None, kind, scale, version)


_UNARY = (
    *("LOGISTIC", "TANH", "RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LEAKY_RELU", "ABS", "NEG", "SQRT", "RSQRT"),
    *("EXP", "LOG", "SQUARE", "SIN", "COS", "FLOOR", "GELU", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"),
)
#: Scales and zero points of results with a fixed range, for int8; uint8's zero points are 128 larger.
_FIXED = {
    "LOGISTIC": (256, -128),
    "SOFTMAX": (256, -128),
    "TANH": (128, 0),
    "L2_NORMALIZATION": (128, 0),
    "LOG_SOFTMAX": (16, 127),
}


def function(g: Graph) -> None:
    """LOGISTIC and others of one operand."""
    x, name = g.pick(), g.choose(*_UNARY)
    kind = g.kind(x)
    if name in ("SQRT", "RSQRT", "LOG") and kind == "float32":  # later operators promise nothing about NaN
        (x,) = g.operate("ABS", [x])
    options = {
        "LEAKY_RELU": ("LeakyReluOptions", {"alpha": 0.1}),
        "GELU": ("GeluOptions", {"approximate": g.toss(0.5)}),
        "SOFTMAX": ("SoftmaxOptions", {"beta": g.choose(1.0, 1.0, 0.5, 2.0)}),
        "L2_NORMALIZATION": ("L2NormOptions", {"fused_activation_function": 0}),
    }.get(name)
    scale = g.draw_quantization(kind)
    if kind in ("int8", "uint8") and name in _FIXED:
        divisor, zero_point = _FIXED[name]
        scale = quantized(1 / divisor, zero_point + 128 * (kind == "uint8"))
    elif kind == "int16" and name in ("LOGISTIC", "TANH", "SOFTMAX"):
        scale = quantized(1 / 32768)
    elif name.startswith("RELU") and g.toss(0.4):
        scale = g.quantization(x)
    version = {"int8": 2, "int16": 3 if name in ("LOGISTIC", "TANH") else 2}.get(kind, 1)
    g.operate(name, [x], options, kind, scale, version)


def slope(g: Graph) -> None:
    """PRELU."""
    x = g.pick()
    kind, shape = g.kind(x), g.shape(x)
    if len(shape) < 2:
        raise NotDrawnError
    part = (*(1 for _ in shape[1:-1]), shape[-1])
    values = g.random.normal(0, 0.3, part)
    alpha = (
        float_constant(g, values)
        if kind == "float32"
        else g.constant(g.draw(kind, part), kind, g.draw_quantization(kind))
    )
    g.operate("PRELU", [x, alpha], None, kind, g.draw_quantization(kind))


def pool(g: Graph) -> None:
    """AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D."""
    x = g.pick(4)
    kind, name = g.kind(x), g.choose("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
    options = {**_window(g), "filter_width": g.choose(1, 2, 3), "filter_height": g.choose(2, 3)}
    options |= {"fused_activation_function": g.choose(*FUSED)}
    scale = g.quantization(x) if g.toss(0.8) else g.draw_quantization(kind)
    g.operate(name, [x], ("Pool2DOptions", options), kind, scale, {"int8": 2, "int16": 3}.get(kind, 1))


def reduction(g: Graph) -> None:
    """MEAN, SUM, REDUCE_MAX or REDUCE_MIN, along axes of either sign."""
    x = g.pick()
    kind, rank = g.kind(x), len(g.shape(x))
    if rank == 0:
        raise NotDrawnError
    name = g.choose("MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
    axes = [1, 2] if rank == 4 and g.toss(0.4) else g.random.permutation(rank)[: g.number(1, rank + 1)].tolist()
    axes = [axis - rank if g.toss(0.2) else axis for axis in axes]
    scale = g.draw_quantization(kind) if name in ("MEAN", "SUM") and g.toss(0.8) else g.quantization(x)
    inputs = [x, g.constant(axes, "int32")]
    version = {"int8": 2, "int16": 3}.get(kind, 1)
    g.operate(name, inputs, ("ReducerOptions", {"keep_dims": g.toss(0.5)}), kind, scale, version)


def resize(g: Graph) -> None:
    """RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR."""
    x, bilinear, corners = g.pick(4), g.toss(0.7), g.toss(0.3)
    name, table = (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions")
        if bilinear
        else ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
    )
    options = {"align_corners": corners, "half_pixel_centers": not corners and g.toss(0.5)}
    inputs = [x, g.constant(g.random.integers(1, 12, 2), "int32")]
    g.operate(name, inputs, (table, options), g.kind(x), g.quantization(x), 3)


def conversion(g: Graph) -> None:
    """QUANTIZE or DEQUANTIZE."""
    x = g.pick()
    kind = g.kind(x)
    if kind != "float32" and g.toss(0.5):
        g.operate("DEQUANTIZE", [x], version={"int8": 2, "int16": 3}.get(kind, 1))
        return
    to = g.choose("int8", "int8", "uint8", "int16")
    g.operate("QUANTIZE", [x], None, to, g.draw_quantization(to), 1 if kind == "float32" and to != "int16" else 2)


def movement(g: Graph) -> None:
    """RESHAPE and others that move values."""
    x = g.pick()
    shape = g.shape(x)
    if not shape:
        raise NotDrawnError
    g.choose(*_MOVES)(g, x, shape)


def _move(
    g: Graph, name: str, x: int, numbers: Any = None, options: Any = None, count: int = 1, *, first: bool = False
) -> None:
    """Append an operator on `x` and perhaps a constant of int32, before `x` or after it."""
    kind = g.kind(x)
    constants = [] if numbers is None else [g.constant(values, "int32") for values in numbers]
    scale = g.quantization(x) if g.toss(0.85) else g.draw_quantization(kind)
    inputs = [*constants, x] if first else [x, *constants]
    g.operate(name, inputs, options, kind, scale, 2 if kind in ("int8", "int16") else 1, count)


def _reshape(g: Graph, x: int, shape: Shape) -> None:
    size = int(np.prod(shape))
    to = g.choose([size], [1, size], [-1], [size // shape[-1], shape[-1]], [1, 1, size // shape[-1], shape[-1]])
    options = ("ReshapeOptions", {"new_shape": np.asarray(to, np.int32)})
    _move(g, "RESHAPE", x, [to] if g.toss(0.8) else None, options)


def _shape_of(g: Graph, x: int, shape: Shape) -> None:
    """Reshape to a batch that is computed: SHAPE, STRIDED_SLICE, PACK, RESHAPE."""
    if len(shape) < 2:
        raise NotDrawnError

    def number(name: str, inputs: Sequence[int], options: Any) -> int:
        return g.operate(name, inputs, options, "int32", is_activation=False)[0]

    sizes = number("SHAPE", [x], ("ShapeOptions", {"out_type": 2}))
    ends = [g.constant([value], "int32") for value in (0, 1, 1)]
    first = number("STRIDED_SLICE", [sizes, *ends], ("StridedSliceOptions", {"shrink_axis_mask": 1}))
    rest = g.constant(g.choose(-1, int(np.prod(shape[1:]))), "int32")
    packed = number("PACK", [first, rest], ("PackOptions", {"values_count": 2, "axis": 0}))
    g.operate("RESHAPE", [x, packed], None, g.kind(x), g.quantization(x))


def _pad(g: Graph, x: int, shape: Shape) -> None:
    _move(g, "PAD", x, [g.random.integers(0, 3, (len(shape), 2))])


def _transpose(g: Graph, x: int, shape: Shape) -> None:
    _move(g, "TRANSPOSE", x, [g.random.permutation(len(shape))])


def _slice(g: Graph, x: int, shape: Shape) -> None:
    begin = [g.number(0, n) for n in shape]
    _move(g, "SLICE", x, [begin, [g.choose(-1, g.number(1, n - b + 1)) for n, b in zip(shape, begin, strict=True)]])


def _stride(g: Graph, x: int, shape: Shape) -> None:
    begin, steps = [g.number(-n, n) for n in shape], [g.choose(1, 1, 2) for _ in shape]
    masks = {f"{end}_mask": g.number(0, 1 << len(shape)) for end in ("begin", "end")}
    _move(g, "STRIDED_SLICE", x, [begin, shape, steps], ("StridedSliceOptions", masks))


def _join(g: Graph, x: int, shape: Shape) -> None:
    axis = g.number(0, len(shape))
    fitting = [t for t in g.computed if g.kind(t) == g.kind(x) and len(g.shape(t)) == len(shape)]
    fitting = [
        t for t in fitting if all(a == b for k, (a, b) in enumerate(zip(g.shape(t), shape, strict=True)) if k != axis)
    ]
    parts = [x, *(g.choose(*fitting) for _ in range(g.choose(1, 1, 2, 3, 4)))]
    options = {"axis": axis if g.toss(0.6) else axis - len(shape), "fused_activation_function": 0}
    scale = g.quantization(x) if g.toss(0.85) else g.draw_quantization(g.kind(x))
    version = 2 if g.kind(x) in ("int8", "int16") else 1
    g.operate("CONCATENATION", parts, ("ConcatenationOptions", options), g.kind(x), scale, version)


def _split(g: Graph, x: int, shape: Shape) -> None:
    axis = g.number(0, len(shape))
    counts = [n for n in (2, 3, 4) if shape[axis] % n == 0]
    if not counts:
        raise NotDrawnError
    count = g.choose(*counts)
    _move(g, "SPLIT", x, [axis], ("SplitOptions", {"num_splits": count}), count, first=True)


def _expand(g: Graph, x: int, shape: Shape) -> None:
    _move(g, "EXPAND_DIMS", x, [g.number(-len(shape) - 1, len(shape) + 1)])


def _squeeze(g: Graph, x: int, shape: Shape) -> None:
    axes = [axis for axis, n in enumerate(shape) if n == 1 and g.toss(0.6)]
    _move(g, "SQUEEZE", x, None, ("SqueezeOptions", {"squeeze_dims": np.asarray(axes, np.int32)}))


def _gather(g: Graph, x: int, shape: Shape) -> None:
    axis = g.number(0, len(shape))
    places = g.random.integers(0, shape[axis], g.choose((2,), (3,), (), (2, 2)))
    _move(g, "GATHER", x, [places], ("GatherOptions", {"axis": axis, "batch_dims": 0}))


def _tile(g: Graph, x: int, shape: Shape) -> None:
    _move(g, "TILE", x, [g.random.integers(1, 3, len(shape))])


def _blocks(g: Graph, x: int, shape: Shape) -> None:
    name, table = g.choose(("SPACE_TO_DEPTH", "SpaceToDepthOptions"), ("DEPTH_TO_SPACE", "DepthToSpaceOptions"))
    kind = g.kind(x)
    g.operate(name, [x], (table, {"block_size": 2}), kind, g.quantization(x))


_MOVES = (
    _reshape,
    _shape_of,
    _pad,
    _transpose,
    _slice,
    _stride,
    _join,
    _split,
    _expand,
    _squeeze,
    _gather,
    _tile,
    _blocks,
)
#: Steps, each with its share.
STEPS: tuple[Callable[[Graph], None], ...] = (
    *[convolution] * 4, *[depthwise] * 3, *[dense] * 4, *[transposed] * 2, *[matrix_product] * 2, *[pair] * 6,
    *[function] * 5, slope, *[pool] * 2, *[reduction] * 3, *[resize] * 2, *[conversion] * 4, *[movement] * 8,
)  # fmt: skip
