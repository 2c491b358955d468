"""Operators of one operand whose output has its shape."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import CODES, QUANTIZED, Draw
from opfuzz.one_operator import T
from tflq.model.ir import TensorType

#: operator -> {type: (scale, zero point)} of outputs that LiteRT demands or nearly all models have
FIXED = {
    "LOGISTIC": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "TANH": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128), "int16": (1 / 32768, 0)},
    "SOFTMAX": {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)},
    "LOG_SOFTMAX": {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)},
    "L2_NORMALIZATION": {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)},
}
#: operator -> magnitude of its outputs for inputs up to x
REACH = {
    "EXP": lambda x: math.exp(min(x, 60)),
    "LOG": lambda x: abs(math.log(x)) + 1,
    "SQRT": math.sqrt,
    "RSQRT": lambda x: 4 / math.sqrt(x),
    "ABS": lambda x: x,
    "GELU": lambda x: x,
    "HARD_SWISH": lambda x: x,
}
OPTIONS = {
    "ABS": "AbsOptions",
    "NEG": "NegOptions",
    "EXP": "ExpOptions",
    "COS": "CosOptions",
    "SQUARE": "SquareOptions",
    "ZEROS_LIKE": "ZerosLikeOptions",
    "SIGN": "SignOptions",
    "HARD_SWISH": "HardSwishOptions",
    "LOG_SOFTMAX": "LogSoftmaxOptions",
    "RANK": "RankOptions",
    "LOGICAL_NOT": "LogicalNotOptions",
}


def pointwise(draw: Draw, op: str) -> Case:
    """Draw an operator that maps every element by itself."""
    (kind,), (made,) = draw.types(op)
    x = draw.tensor(str(kind), draw.shape())
    if op in ("LOG", "SQRT", "RSQRT") and x.type in QUANTIZED and draw.chance(0.95):
        x = replace(x, zero_point=0 if x.type == "int16" else CODES[x.type][0])  # no negative inputs
    return draw.case(op, [x], [output(draw, op, x, made)], options(draw, op), given=lambda t: positive(draw, op, t))


def output(draw: Draw, op: str, x: T, kind: str) -> T:
    """Return an output of x's shape with a scale for the operator's results."""
    if kind not in QUANTIZED:
        return T(kind, x.shape)
    if kind in FIXED.get(op, {}) and draw.chance(0.95):
        return T(kind, x.shape, *FIXED[op][kind])
    low, high = CODES[x.type]
    largest = max(abs(low - x.zero_point), abs(high - x.zero_point)) * float(x.scale)
    reach = REACH.get(op, lambda x: x)(max(largest, 1e-6))
    return draw.tensor(kind, tuple(x.shape), draw.near(reach / (CODES[kind][1] - CODES[kind][0])))


def positive(draw: Draw, op: str, x: T) -> Array | None:
    """Return inputs that suit the operator: positive for roots and logarithms."""
    if op not in ("LOG", "SQRT", "RSQRT") or draw.chance(0.05):
        return None
    if x.type == "float32":
        return np.abs(draw.floats(tuple(x.shape)))
    if x.type == "int16":
        return draw.rng.integers(1, 2**15, tuple(x.shape)).astype(np.int16)
    return None


def options(draw: Draw, op: str) -> Any:
    """Return the operator's options table, if it has one."""
    if op == "LEAKY_RELU":
        return "LeakyReluOptions", {"alpha": draw.pick([0.1, 0.2, 0.5, -0.3, 1.5, draw.real(0, 1), 0.0])}
    if op == "GELU":
        return "GeluOptions", {"approximate": draw.chance(0.5)}
    if op == "SOFTMAX":
        return "SoftmaxOptions", {"beta": draw.pick([1.0, 1.0, 1.0, 0.5, 2.0, draw.real(0.01, 8)])}
    return (OPTIONS[op], {}) if op in OPTIONS else None


def rows(draw: Draw, op: str) -> Case:
    """Draw an operator along the last axis."""
    (kind,), (made,) = draw.types(op)
    x = draw.tensor(str(kind), draw.shape(1, 4))
    chosen = ("L2NormOptions", {"fused_activation_function": 0}) if op == "L2_NORMALIZATION" else options(draw, op)
    return draw.case(op, [x], [output(draw, op, x, made)], chosen)


def relu(draw: Draw, op: str) -> Case:
    """Draw RELU and its relatives: the output's scale is near the input's, or the same."""
    (kind,), (made,) = draw.types(op)
    x = draw.tensor(str(kind), draw.shape(), draw.scale(-7, -3))
    if kind not in QUANTIZED:
        return draw.case(op, [x], [x])
    same = draw.chance(0.3)
    y = x if same else draw.tensor(made, tuple(x.shape), draw.near(float(x.scale), 1))
    return draw.case(op, [x], [y])


def quantize(draw: Draw, op: str) -> Case:
    """Draw QUANTIZE, from floats or from codes to codes."""
    (kind,), (made,) = draw.types(op)
    x = draw.tensor(str(kind), draw.shape())
    if kind == "int32":
        x = replace(x, scale=draw.scale(-20, -8), zero_point=0)
    if x.scale is None:
        magnitude = draw.pick([0.1, 1.0, 10.0, 300.0])
        y = draw.tensor(made, tuple(x.shape), draw.near(magnitude * 6 / (CODES[made][1] - CODES[made][0])))
        given = lambda t: draw.floats(tuple(t.shape), magnitude)  # noqa: E731
        return draw.case(op, [x], [y], ("QuantizeOptions", {}), given=given)
    spread = float(x.scale) * (2**24 if kind == "int32" else CODES[x.type][1] - CODES[x.type][0])
    scale = draw.near(spread / (CODES[made][1] - CODES[made][0]))
    y = T(made, x.shape, scale, 0) if made == "int32" else draw.tensor(made, tuple(x.shape), scale)
    return draw.case(op, [x], [y], ("QuantizeOptions", {}))


def dequantize(draw: Draw, op: str) -> Case:
    """Draw DEQUANTIZE, with a constant input if its type cannot be fed."""
    (kind,), (made,) = draw.types(op)
    shape = draw.shape()
    if kind == "int8" and shape and draw.chance(0.2):
        axis = draw.int(0, len(shape) - 1)
        if shape[axis] > 1:
            x = T(kind, shape, [draw.scale() for _ in range(shape[axis])], [0] * shape[axis], axis)
            return draw.case(op, [x], [T(made, shape)], ("DequantizeOptions", {}), version=5)
    x = draw.tensor(str(kind), shape)
    return draw.case(op, [x], [T(made, x.shape)], ("DequantizeOptions", {}))


def cast(draw: Draw, op: str) -> Case:
    """Draw CAST between any two types; values that the target type can hold, unless both are integers."""
    left = str(draw.types(op)[0][0])
    right = draw.types(op, lambda row: row.signature.reads(TensorType[left.upper()]))[1][0]
    x = T(left, draw.shape())

    def given(tensor: T) -> Array | None:
        if np.dtype(left if left != "int4" else "int8").kind not in "fc":
            return None
        high = 100 if right in ("int8", "uint8", "int4") else 30000
        low = 0 if right.startswith("u") else -high
        return draw.rng.uniform(low, high, tuple(tensor.shape)).astype(left)

    codes = {"in_data_type": 0, "out_data_type": 0}
    return draw.case(op, [x], [T(right, x.shape)], ("CastOptions", codes), given=given)


def fake_quant(draw: Draw, op: str) -> Case:
    """Draw FAKE_QUANT."""
    x = T("float32", draw.shape())
    low, width = draw.real(-6, 0), draw.real(0.5, 12)
    options = {"min": low, "max": max(0.1, low + width), "num_bits": draw.pick([8, 8, 4, 16, 2])}
    return draw.case(op, [x], [x], ("FakeQuantOptions", options))


def describe(draw: Draw, op: str) -> Case:
    """Draw SHAPE or RANK."""
    kind = str(draw.types(op)[0][0])
    if op == "RANK":
        return draw.case(op, [draw.tensor(kind, draw.shape())], [T("int32", ())], ("RankOptions", {}))
    made = draw.pick(["int32", "int64"])
    options = {"out_type": {"int32": 2, "int64": 4}[made]}
    shape = draw.shape()
    return draw.case(op, [draw.tensor(kind, shape)], [T(made, (len(shape),))], ("ShapeOptions", options))


SPECS = {
    **dict.fromkeys(
        (
            "ABS",
            "NEG",
            "EXP",
            "LOG",
            "SQRT",
            "RSQRT",
            "SQUARE",
            "SIN",
            "COS",
            "FLOOR",
            "GELU",
            "HARD_SWISH",
            "LEAKY_RELU",
            "LOGISTIC",
            "TANH",
            "LOGICAL_NOT",
            "ZEROS_LIKE",
        ),
        pointwise,
    ),
    **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), rows),
    **dict.fromkeys(("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1"), relu),
    **dict.fromkeys(("RANK", "SHAPE"), describe),
    **dict.fromkeys(("CEIL", "ROUND", "ELU", "SIGN", "COMPLEX_ABS", "REAL", "IMAG"), pointwise),
    "FAKE_QUANT": fake_quant,
    "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize,
    "CAST": cast,
}
