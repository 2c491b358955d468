"""Half-way cases of every operator that requantizes, over all codes of an 8-bit input and a thirteenth of 16-bit ones.

Scales are powers of two times small odd numbers, so real multipliers are exact. About half of all products lie half-way
between two output codes, where roundings of different releases and processors differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.one_operator import T

#: Codes of each type: all of 8 bits; for 16 bits 71 * 71, which leave every remainder by every power of two.
CODES = {
    "int8": np.arange(-128, 128, dtype=np.int8),
    "uint8": np.arange(256, dtype=np.uint8),
    "int16": np.arange(-(2**15), 2**15 - 13, 13, dtype=np.int16),
}
#: type -> zero points of input and output
ZERO_POINTS = {"int8": ((0, 0), (3, -5), (-128, 127)), "uint8": ((128, 100), (0, 255)), "int16": ((0, 0),)}
BYTES = ("int8", "uint8")
#: LSB of output per LSB of input.
RATIOS = (0.5, 1.5, 0.25, 0.625, 2.5, 0.03125, 1.0)
#: Scale of outputs.
SCALE = 2.0**-5
#: Weights whose products with codes are half-way cases of one ratio or another.
WEIGHTS = (1, -1, 2, 3, -3, 5, -7, 64, -64, 127, -127, 11, -2, 4, 9, -16, 33)
#: Comparisons rescale both operands.
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "GREATER_EQUAL")

Options = tuple[str, Mapping[str, Any]] | None


def ties() -> Iterator[Case]:
    """Yield every case, the same ones each time."""
    for op, options in _UNARY:
        yield from unary(op, options)
    for alpha in (0.5, 0.25, 1.5, 3.0, -0.5, -0.25, -1.5, -0.75, 0.0, -1.0, 100.0):
        yield from unary("LEAKY_RELU", ("LeakyReluOptions", {"alpha": alpha}))
    yield from conversions()
    for op in ("ADD", "SUB", "MUL", "SQUARED_DIFFERENCE", "PRELU", *COMPARISONS):
        yield from binary(op)
    yield from convolutions()
    yield from dense()
    yield from matrix_products()
    yield from reductions()
    yield from windows()
    yield from joined()


_UNARY: tuple[tuple[str, Options], ...] = (
    ("RELU", None),
    ("RELU6", None),
    ("RELU_N1_TO_1", None),
    ("RELU_0_TO_1", None),
    ("ABS", ("AbsOptions", {})),
    ("HARD_SWISH", ("HardSwishOptions", {})),
)


def unary(op: str, options: Options) -> Iterator[Case]:
    """Yield an operator of one operand, under all ratios of scales."""
    for kind, ratio in product(CODES, RATIOS):
        for zero_in, zero_out in ZERO_POINTS[kind]:
            x = T(kind, CODES[kind].shape, ratio * SCALE, zero_in)
            yield Case(op, (x,), (T(kind, x.shape, SCALE, zero_out),), ((CODES[kind],),), options)


def conversions() -> Iterator[Case]:
    """Yield QUANTIZE from codes to codes, and from floats half-way between two codes."""
    for kind, made, ratio in product(CODES, CODES, RATIOS):
        zero_in, zero_out = ZERO_POINTS[kind][-1][0], ZERO_POINTS[made][-1][1]
        x = T(kind, CODES[kind].shape, ratio * SCALE, zero_in)
        yield Case("QUANTIZE", (x,), (T(made, x.shape, SCALE, zero_out),), ((CODES[kind],),), ("QuantizeOptions", {}))
    for made, scale in product(CODES, (SCALE, 0.1, 3.0)):
        for _, zero_out in ZERO_POINTS[made]:
            codes = np.arange(-300, 301).astype(np.float32)
            values = np.concatenate([(codes + np.float32(offset)) * np.float32(scale) for offset in (0, 0.5, -0.25)])
            x = T("float32", values.shape)
            yield Case("QUANTIZE", (x,), (T(made, x.shape, scale, zero_out),), ((values,),), ("QuantizeOptions", {}))


def binary(op: str) -> Iterator[Case]:
    """Yield all codes of one operand against some of the other: both of one shape, and broadcast."""
    name = f"{op.title().replace('_', '')}Options"
    for kind, (left, right), same_shape in product(CODES, ((1.0, 0.5), (0.5, 1.5), (0.125, 1.0)), (True, False)):
        codes, few = CODES[kind], _some(kind)
        first, second = (np.repeat(codes, few.size), np.tile(few, codes.size)) if same_shape else (codes[:, None], few)
        for zero_in, zero_out in ZERO_POINTS[kind]:
            a = T(kind, first.shape, left * SCALE, zero_in)
            b = T(kind, second.shape, right * (1.0 if op in ("MUL", "PRELU") else SCALE), zero_in)
            shape = np.broadcast_shapes(first.shape, second.shape)
            y = T("bool", shape) if op in COMPARISONS else T(kind, shape, SCALE, zero_out)
            given: Options = (
                None if op == "PRELU" else (name, {"pot_scale_int16": False} if op in ("ADD", "SUB") else {})
            )
            if op == "PRELU":
                b = T(b.type, b.shape, b.scale, b.zero_point, value=second)
            yield Case(op, (a, b), (y,), ((first,) if op == "PRELU" else (first, second),), given)


def _some(kind: str) -> Array:
    codes = CODES[kind]
    return codes[:: codes.size // 16]


def convolutions() -> Iterator[Case]:
    """Yield CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV of one pixel and one channel.

    Each filter is a weight and a ratio.
    """
    for kind in CODES:
        for zero_in, zero_out in ZERO_POINTS[kind]:
            side = math.isqrt(CODES[kind].size)
            codes = CODES[kind].reshape(1, side, side, 1)
            x, w, b = T(kind, codes.shape, SCALE, zero_in), _weights(kind), _bias(kind)
            y = T(kind, (1, side, side, len(WEIGHTS)), SCALE, zero_out)
            options = {"padding": 1, "stride_h": 1, "stride_w": 1}
            dilated = options | {"dilation_h_factor": 1, "dilation_w_factor": 1}
            filters = _shaped(w, (len(WEIGHTS), 1, 1, 1), 0)
            yield Case("CONV_2D", (x, filters, b), (y,), ((codes,),), ("Conv2DOptions", dilated))
            shape = T("int32", (4,), value=y.shape)
            yield Case("TRANSPOSE_CONV", (shape, filters, x), (y,), ((codes,),), ("TransposeConvOptions", options), 3)
            depth = _shaped(w, (1, 1, 1, len(WEIGHTS)), 3)
            for times in (1, len(WEIGHTS)):
                fed = np.repeat(codes, len(WEIGHTS) // times, -1)
                given = ("DepthwiseConv2DOptions", dilated | {"depth_multiplier": times})
                inputs = (T(kind, fed.shape, SCALE, zero_in), depth, b)
                yield Case("DEPTHWISE_CONV_2D", inputs, (y,), ((fed,),), given, 3)


def _weights(kind: str) -> T:
    """Return weights in a row: signed ones with a ratio for each, the others with one for all."""
    if kind == "uint8":
        return T(kind, (len(WEIGHTS),), 0.03125, 128, value=np.array(WEIGHTS) + 128)
    scales = [RATIOS[i % len(RATIOS)] / 4 for i in range(len(WEIGHTS))]
    return T("int8", (len(WEIGHTS),), scales, [0] * len(scales), value=WEIGHTS)


def _shaped(tensor: T, shape: tuple[int, ...], axis: int) -> T:
    return T(tensor.type, shape, tensor.scale, tensor.zero_point, axis, np.reshape(tensor.value, shape))


def _bias(kind: str) -> T:
    scale = np.asarray(_weights(kind).scale) * SCALE
    zeros = [0] * scale.size if scale.ndim else 0
    return T("int64" if kind == "int16" else "int32", (len(WEIGHTS),), scale.tolist(), zeros, value=0)


def dense() -> Iterator[Case]:
    """Yield FULLY_CONNECTED: all codes as rows of the input, and, for a single row, all codes as weights."""
    options = ("FullyConnectedOptions", {"fused_activation_function": 0})
    for kind, ratio in product(CODES, RATIOS):
        for zero_in, zero_out in ZERO_POINTS[kind]:
            weight = "uint8" if kind == "uint8" else "int8"
            offset, lowest = (128, 1) if weight == "uint8" else (0, -127)
            few = T(weight, (len(WEIGHTS), 1), ratio, offset, value=np.array(WEIGHTS)[:, None] + offset)
            rows = CODES[kind][:, None]
            x = T(kind, rows.shape, SCALE, zero_in)
            b = T("int64" if kind == "int16" else "int32", (len(WEIGHTS),), ratio * SCALE, 0, value=0)
            y = T(kind, (len(rows), len(WEIGHTS)), SCALE, zero_out)
            yield Case("FULLY_CONNECTED", (x, few, b), (y,), ((rows,),), options, 4)
            if kind == "int8" and ratio == RATIOS[0]:
                channelwise = _shaped(_weights(kind), (len(WEIGHTS), 1), 0)
                yield Case("FULLY_CONNECTED", (x, channelwise, _bias(kind)), (y,), ((rows,),), options, 5)
            every = np.arange(lowest, lowest + 255)
            all_ = T(weight, (255, 1), ratio, offset, value=every[:, None])
            samples = tuple(
                (np.array([[zero_in + step]]).astype(kind),) for step in (1, -1, 3) if _fits(kind, zero_in + step)
            )
            x, b = T(kind, (1, 1), SCALE, zero_in), T(b.type, (255,), ratio * SCALE, 0, value=0)
            yield Case("FULLY_CONNECTED", (x, all_, b), (T(kind, (1, 255), SCALE, zero_out),), samples, options, 4)


def _fits(kind: str, code: int) -> bool:
    return bool(CODES[kind][0] <= code <= CODES[kind][-1])


def matrix_products() -> Iterator[Case]:
    """Yield BATCH_MATMUL of all codes as a column by a row of some."""
    for kind, ratio in product(("int8", "int16"), RATIOS):
        for zero_in, zero_out in ZERO_POINTS[kind]:
            column, row = CODES[kind][:, None], np.array([WEIGHTS]).astype(kind)
            x, k = T(kind, column.shape, SCALE, zero_in), T(kind, row.shape, ratio, 0)
            y = T(kind, (len(column), len(WEIGHTS)), SCALE, zero_out)
            options = ("BatchMatMulOptions", {"adj_x": False, "adj_y": False})
            yield Case("BATCH_MATMUL", (x, k), (y,), ((column, row),), options, 2)


def reductions() -> Iterator[Case]:
    """Yield MEAN and SUM of few elements: over an image's pixels and over another axis."""
    for op, kind, ratio, count in product(("MEAN", "SUM"), CODES, RATIOS, (2, 3, 4)):
        for zero_in, zero_out in (*ZERO_POINTS[kind], (ZERO_POINTS[kind][0][0],) * 2):
            codes = CODES[kind]
            spread = np.stack([np.roll(codes, place * place) for place in range(count)])
            for shape, axes, keep in (((1, count, 1, -1), (1, 2), True), ((count, -1), (0,), False)):
                fed = spread.reshape(shape)
                x = T(kind, fed.shape, ratio * SCALE, zero_in)
                axis = T("int32", (len(axes),), value=axes)
                y = T(kind, (1, 1, 1, codes.size) if keep else (codes.size,), SCALE, zero_out)
                yield Case(op, (x, axis), (y,), ((fed,),), ("ReducerOptions", {"keep_dims": keep}), 2)


def windows() -> Iterator[Case]:
    """Yield AVERAGE_POOL_2D of two and three taps, RESIZE_BILINEAR to twice and to half the size."""
    for kind, taps in product(CODES, (2, 3)):
        codes = CODES[kind]
        fed = np.stack([codes, *(np.roll(codes, k) for k in range(1, taps))])[None, :, :, None]
        x = T(kind, fed.shape, SCALE, ZERO_POINTS[kind][-1][0])
        y = T(kind, (1, 1, codes.size, 1), x.scale, x.zero_point)
        pool = {"padding": 1, "stride_h": 1, "stride_w": 1, "filter_height": taps, "filter_width": 1}
        yield Case("AVERAGE_POOL_2D", (x,), (y,), ((fed,),), ("Pool2DOptions", pool), 2)
    for kind, (align, half), height in product(CODES, ((False, False), (True, False), (False, True)), (2, 4, 6, 8)):
        codes = CODES[kind]
        fed = np.stack([codes, np.roll(codes, 1), codes[::-1], np.roll(codes, 7)])[None, :, :, None]
        x = T(kind, fed.shape, SCALE, 0)
        y = T(kind, (1, height, codes.size // 2, 1), SCALE, 0)
        size = T("int32", (2,), value=y.shape[1:3])
        resize = {"align_corners": align, "half_pixel_centers": half}
        yield Case("RESIZE_BILINEAR", (x, size), (y,), ((fed,),), ("ResizeBilinearOptions", resize), 3)


def joined() -> Iterator[Case]:
    """Yield CONCATENATION of uint8, which is rescaled."""
    for ratio, (zero_in, zero_out) in product(RATIOS, ZERO_POINTS["uint8"]):
        codes = CODES["uint8"]
        a, b = T("uint8", codes.shape, ratio * SCALE, zero_in), T("uint8", codes.shape, SCALE, zero_out)
        y = T("uint8", (2 * codes.size,), SCALE, zero_out)
        yield Case("CONCATENATION", (a, b), (y,), ((codes, codes),), ("ConcatenationOptions", {"axis": 0}))
