"""Float operators on inputs that other cases lack: sums as long as in real networks, arguments of all magnitudes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from opfuzz.case import Case
from opfuzz.draw import Draw
from opfuzz.one_operator import T

F = "float32"
SAME = {"padding": 0, "stride_h": 1, "stride_w": 1, "fused_activation_function": 0}
DILATION = {"dilation_h_factor": 1, "dilation_w_factor": 1}


def weights(draw: Draw, shape: tuple[int, ...], spread: float = 0.1) -> T:
    """Return constants around 0."""
    return T(F, shape, value=draw.floats(shape, spread, 0.0))


def dense(draw: Draw, op: str) -> Case:
    """Draw up to 4096 inputs per unit."""
    depth, units = draw.int(200, 4096), draw.int(1, 12)
    inputs = [T(F, (draw.int(1, 4), depth)), weights(draw, (units, depth)), weights(draw, (units,))]
    return draw.case(op, inputs, [T(F, (inputs[0].shape[0], units))], ("FullyConnectedOptions", {}), version=1)


def conv(draw: Draw, op: str) -> Case:
    """Draw up to 9 x 512 inputs per output, or 1 x 2048."""
    (kernel, depth), filters = draw.pick([(1, 2048), (3, 512), (3, 64)]), draw.int(1, 12)
    inputs = [T(F, (1, 6, 6, depth)), weights(draw, (filters, kernel, kernel, depth)), weights(draw, (filters,))]
    return draw.case(op, inputs, [T(F, (1, 6, 6, filters))], ("Conv2DOptions", {**SAME, **DILATION}), version=1)


def depthwise(draw: Draw, op: str) -> Case:
    """Draw windows of up to 11 x 11."""
    kernel, depth = draw.int(3, 11), draw.int(8, 64)
    inputs = [T(F, (1, 12, 12, depth)), weights(draw, (1, kernel, kernel, depth)), weights(draw, (depth,))]
    options = {**SAME, **DILATION, "depth_multiplier": 1}
    return draw.case(op, inputs, [T(F, (1, 12, 12, depth))], ("DepthwiseConv2DOptions", options), version=1)


def matmul(draw: Draw, op: str) -> Case:
    """Draw up to 2048 products per output."""
    depth, rows, columns = draw.int(200, 2048), draw.int(1, 8), draw.int(1, 8)
    inputs = [T(F, (2, rows, depth)), T(F, (2, depth, columns))]
    options = {"adj_x": False, "adj_y": False, "asymmetric_quantize_inputs": False}
    return draw.case(op, inputs, [T(F, (2, rows, columns))], ("BatchMatMulOptions", options), version=1)


def reduce(draw: Draw, op: str) -> Case:
    """Draw planes of up to 56 x 56, or rows of up to 65,536."""
    if draw.chance(0.5):
        x, axes = T(F, (draw.int(1, 16), draw.pick([768, 4096, 65536]))), T("int32", (1,), value=[1])
        return draw.case(op, [x, axes], [T(F, x.shape[:1])], ("ReducerOptions", {}), version=1)
    side, depth = draw.int(7, 56), draw.int(1, 32)
    listed, _ = draw.listed([1, 2], constant=1.0)
    output = T(F, (1, depth))
    return draw.case(op, [T(F, (1, side, side, depth)), listed], [output], ("ReducerOptions", {}), version=1)


def rows(draw: Draw, op: str) -> Case:
    """Draw rows of up to 4096."""
    shape = (draw.int(1, 4), draw.int(200, 4096))
    options = ("SoftmaxOptions", {"beta": 1.0}) if op == "SOFTMAX" else ("LogSoftmaxOptions", {})
    return draw.case(op, [T(F, shape)], [T(F, shape)], options, version=1)


def wide(draw: Draw, op: str) -> Case:
    """Draw arguments from 2**-30 to 2**30, with both signs if the function accepts them."""
    x = T(F, (4099,))
    values = np.exp2(draw.rng.uniform(-30, 30, x.shape))
    signs = 1 if op in POSITIVE else draw.rng.choice([-1, 1], x.shape)
    return Case(op, (x,), (x,), ((np.asarray(values * signs, np.float32),),))


#: Functions of positive numbers.
POSITIVE = ("LOG", "RSQRT", "SQRT")

LONG: Mapping[str, Callable[[Draw, str], Case]] = {
    "FULLY_CONNECTED": dense,
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "BATCH_MATMUL": matmul,
    "MEAN": reduce,
    "SUM": reduce,
    "SOFTMAX": rows,
    "LOG_SOFTMAX": rows,
    **dict.fromkeys((*POSITIVE, "COS", "ELU", "EXP", "HARD_SWISH", "LOGISTIC", "SIN", "TANH"), wide),
}
