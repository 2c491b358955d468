"""Convolutions, pools and matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import CODES, QUANTIZED, Draw, Shape
from opfuzz.families.binary import ACTIVATIONS
from opfuzz.one_operator import T

SAME = 0
#: TensorType numbers of the schema
INT32, INT64 = 2, 4


def pixels(size: int, window: int, stride: int, padding: int) -> int:
    """Return the number of outputs of a window with that reach."""
    return -(-size // stride) if padding == SAME else max(0, (size + stride - window) // stride)


def window(draw: Draw, dilated: bool = True) -> tuple[Shape, Shape, dict[str, Any], Shape]:
    """Return image size, kernel size, options and output size of a window that fits."""
    kernel = (draw.int(1, 5), draw.int(1, 5)) if draw.chance(0.8) else (1, 1)
    stride = (draw.int(1, 4), draw.int(1, 4)) if draw.chance(0.6) else (1, 1)
    dilation = (draw.int(1, 4), draw.int(1, 4)) if dilated and draw.chance(0.3) else (1, 1)
    padding = draw.int(0, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    sizes = [(r if padding else 1, r + 7) for r in reach]
    image = (draw.extent(*sizes[0]), draw.extent(*sizes[1]))
    out = tuple(pixels(n, r, s, padding) for n, r, s in zip(image, reach, stride, strict=True))
    options = {
        "padding": padding,
        "stride_h": stride[0],
        "stride_w": stride[1],
        "fused_activation_function": draw.pick(ACTIVATIONS),
    }
    if dilated:
        options |= {"dilation_h_factor": dilation[0], "dilation_w_factor": dilation[1]}
    return image, kernel, options, out


def weights(draw: Draw, kind: str, shape: Shape, axis: int, channelwise: float = 0.5) -> T:
    """Return weights; with probability `channelwise`, signed ones have a scale per channel."""
    if kind == "float32":
        return T(kind, shape, value=draw.floats(shape, 1.0, 0.02))
    value = draw.values(kind, shape)
    if kind == "uint8":
        zero = draw.zero_point(kind) if draw.chance(0.2) else draw.int(80, 170)
        return T(kind, shape, draw.scale(), zero, value=value)
    if shape[axis] > 1 and kind != "int16" and draw.chance(channelwise):
        middle = draw.real(-8, -3)
        scales = [draw.scale(middle - 2, middle + 2) for _ in range(shape[axis])]
        return T(kind, shape, scales, [0] * shape[axis], axis, value)
    return T(kind, shape, draw.scale(), 0, value=value)


def bias(draw: Draw, x: T, w: T, channels: int, kind: str) -> T:
    """Return a bias with the scale for x and w."""
    if kind == "float32":
        return T(kind, (channels,), value=draw.floats((channels,), 1.0, 0.02))
    scales = np.atleast_1d(np.asarray(w.scale, np.float32)) * np.float32(x.scale)
    reach = 2**30 if draw.chance(0.03) else draw.pick([20, 3000, 50000])
    value = draw.rng.integers(-reach, reach, channels)
    if len(scales) > 1:
        return T(kind, (channels,), scales, [0] * len(scales), 0, value)
    return T(kind, (channels,), float(scales[0]), 0, value=value)


def result(draw: Draw, x: T, w: T, shape: Shape, length: int, kind: str) -> T:
    """Return an output whose scale fits sums of `length` products."""
    if kind not in QUANTIZED:
        return T(kind, shape)
    spread = float(np.mean(np.asarray(w.scale))) * float(x.scale) * math.sqrt(max(length, 1))
    codes = (CODES[x.type][1] - CODES[x.type][0]) * (CODES[w.type][1] - CODES[w.type][0]) / 12
    return draw.tensor(kind, shape, draw.near(8 * spread * codes / (CODES[kind][1] - CODES[kind][0])))


def conv(draw: Draw, op: str) -> Case:
    """Draw CONV_2D, with groups."""
    (kind, weight, added), (made,) = draw.types(op)
    (h, w), (kh, kw), options, out = window(draw)
    batch, groups, depth = draw.int(1, 2), draw.pick([1, 1, 1, 2, 3]), draw.extent(1, 12)
    filters = groups * draw.extent(1, 9)
    x = draw.tensor(str(kind), (batch, h, w, groups * depth))
    hybrid = kind == "float32" and weight != "float32"
    k = weights(draw, str(weight), (filters, kh, kw, depth), 0, 0.98 if hybrid and groups > 1 else 0.5)
    if kind == "int16":
        options["quantized_bias_type"] = {"int32": INT32, "int64": INT64}[str(added)]
    b = bias(draw, x, k, filters, str(added))
    y = result(draw, x, k, (batch, *out, filters), kh * kw * depth, made)
    return draw.case(op, [x, k, b], [y], ("Conv2DOptions", options))


def depthwise(draw: Draw, op: str) -> Case:
    """Draw DEPTHWISE_CONV_2D."""
    (kind, weight, added), (made,) = draw.types(op)
    (h, w), (kh, kw), options, out = window(draw)
    batch, depth, times = draw.int(1, 2), draw.extent(1, 20), draw.pick([1, 1, 2, 3])
    channels = depth * times
    x = draw.tensor(str(kind), (batch, h, w, depth))
    hybrid = kind == "float32" and weight != "float32"
    k = weights(draw, str(weight), (1, kh, kw, channels), 3, 0.98 if hybrid else 0.5)
    inputs = [x, k, None if added is None else bias(draw, x, k, channels, str(added))]
    options["depth_multiplier"] = times
    y = result(draw, x, k, (batch, *out, channels), kh * kw, made)
    return draw.case(op, inputs[: 3 if added else 2], [y], ("DepthwiseConv2DOptions", options))


def transposed(draw: Draw, op: str) -> Case:
    """Draw TRANSPOSE_CONV."""
    (_, weight, kind, added), (made,) = draw.types(op)
    (h, w), (kh, kw), options, small = window(draw, dilated=False)
    batch, depth, filters = draw.int(1, 2), draw.extent(1, 9), draw.extent(1, 9)
    x = draw.tensor(str(kind), (batch, *small, depth))
    k = weights(draw, str(weight), (filters, kh, kw, depth), 0)
    if kind == "int16" and added:
        options["quantized_bias_type"] = {"int32": INT32, "int64": INT64}[str(added)]
    shape, value = draw.listed([batch, h, w, filters], constant=0.8)
    inputs = [shape, k, x] + ([bias(draw, x, k, filters, str(added))] if added else [])
    y = result(draw, x, k, (batch, h, w, filters), depth * 2, made)
    return draw.case(op, inputs, [y], ("TransposeConvOptions", options), given=lambda t: value if t is shape else None)


def dense(draw: Draw, op: str) -> Case:
    """Draw FULLY_CONNECTED; two outputs mean shuffled weights, which come in blocks."""
    (kind, weight, added), (made, *workspace) = draw.types(op)
    depth, units = draw.extent(1, 40), draw.extent(1, 20)
    lead = draw.shape(1, 3, 12)
    if workspace:
        depth, units, lead = 16 * draw.extent(1, 3), 4 * draw.extent(1, 4), (int(draw.pick([1, 4])),)
    x = draw.tensor(str(kind), (*lead, depth))
    k = weights(draw, str(weight), (units, depth), 0)
    keep = draw.chance(0.5)
    options = {"fused_activation_function": draw.pick(ACTIVATIONS), "keep_num_dims": keep}
    options["weights_format"] = len(workspace)
    if kind == "float32" and weight != "float32":
        options["asymmetric_quantize_inputs"] = draw.chance(0.5)
    if kind == "int16" and added:
        options["quantized_bias_type"] = {"int32": INT32, "int64": INT64}[str(added)]
    out = (*lead, units) if keep else (math.prod(lead), units)
    inputs = [x, k, None if added is None else bias(draw, x, k, units, str(added))]
    y = result(draw, x, k, out, depth, made)
    outputs = [y, *(T(str(name), x.shape) for name in workspace)]
    return draw.case(op, inputs, outputs, ("FullyConnectedOptions", options))


def batch_matmul(draw: Draw, op: str) -> Case:
    """Draw BATCH_MATMUL with batches that broadcast; either side transposed."""
    (left, right), (made,) = draw.types(op)
    rows, depth, columns = draw.extent(1, 9), draw.extent(1, 20), draw.extent(1, 9)
    outer = draw.broadcasting(2)
    turn = draw.chance(0.4), draw.chance(0.4)
    a = (*outer[0], *((depth, rows) if turn[0] else (rows, depth)))
    b = (*outer[1], *((columns, depth) if turn[1] else (depth, columns)))
    x = draw.tensor(str(left), a)
    k = draw.tensor(str(right), b, zero_point=0 if left == "int16" or draw.chance(0.5) else None)
    shape = (*np.broadcast_shapes(*outer), rows, columns)
    inputs = [x, draw.constant(k, 0.4)]
    options = {"adj_x": turn[0], "adj_y": turn[1], "asymmetric_quantize_inputs": draw.chance(0.5)}
    y = T(made, shape, draw.scale(), 0) if made == "int32" else result(draw, x, k, shape, depth, made)
    return draw.case(op, inputs, [y], ("BatchMatMulOptions", options))


def pool(draw: Draw, op: str) -> Case:
    """Draw AVERAGE_POOL_2D, MAX_POOL_2D or L2_POOL_2D."""
    (kind,), (made,) = draw.types(op)
    (h, w), (kh, kw), options, out = window(draw, dilated=False)
    options |= {"filter_height": kh, "filter_width": kw}
    batch, depth = draw.int(1, 2), draw.extent(1, 20)
    x = draw.tensor(str(kind), (batch, h, w, depth))
    y = T(made, (batch, *out, depth), x.scale, x.zero_point)
    return draw.case(op, [x], [y], ("Pool2DOptions", options))


def volume(draw: Draw, op: str) -> Case:
    """Draw CONV_3D or CONV_3D_TRANSPOSE."""
    (h, w), (kh, kw), options, (oh, ow) = window(draw)
    depth, stride = draw.int(1, 3), draw.int(1, 2)
    d = draw.extent(depth, depth + 3)
    od = pixels(d, depth, stride, options["padding"])
    batch, channels, filters = draw.int(1, 2), draw.extent(1, 4), draw.extent(1, 4)
    options |= {"stride_d": stride, "dilation_d_factor": 1}
    added = [T("float32", (filters,), value=draw.floats((filters,), 1.0, 0.0))] if draw.chance(0.6) else []
    if op == "CONV_3D":
        x, y = T("float32", (batch, d, h, w, channels)), T("float32", (batch, od, oh, ow, filters))
        k = T("float32", (depth, kh, kw, channels, filters))
        return draw.case(op, [x, draw.constant(k, 0.7), *added], [y], ("Conv3DOptions", options))
    options |= {"dilation_h_factor": 1, "dilation_w_factor": 1}
    (h, w), (kh, kw), plain, (oh, ow) = window(draw, dilated=False)
    options |= {name: plain[name] for name in ("padding", "stride_h", "stride_w")}
    od = pixels(d, depth, stride, options["padding"])
    shape, value = draw.listed([batch, d, h, w, filters], constant=0.8)
    k = draw.constant(T("float32", (depth, kh, kw, filters, channels)), 0.7)
    x, y = T("float32", (batch, od, oh, ow, channels)), T("float32", (batch, d, h, w, filters))
    return draw.case(
        op, [shape, k, x, *added], [y], ("Conv3DOptions", options), given=lambda t: value if t is shape else None
    )


SPECS = {
    "CONV_3D": volume,
    "CONV_3D_TRANSPOSE": volume,
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "TRANSPOSE_CONV": transposed,
    "FULLY_CONNECTED": dense,
    "BATCH_MATMUL": batch_matmul,
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), pool),
}
