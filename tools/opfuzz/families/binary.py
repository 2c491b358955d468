"""Operators of two operands that broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import CODES, QUANTIZED, Draw
from opfuzz.one_operator import T

OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "POW": "PowOptions",
    "FLOOR_DIV": "FloorDivOptions",
    "FLOOR_MOD": "FloorModOptions",
    "SQUARED_DIFFERENCE": "SquaredDifferenceOptions",
    "EQUAL": "EqualOptions",
    "NOT_EQUAL": "NotEqualOptions",
    "LESS": "LessOptions",
    "LESS_EQUAL": "LessEqualOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
    "LOGICAL_AND": "LogicalAndOptions",
    "LOGICAL_OR": "LogicalOrOptions",
    "ATAN2": "ATan2Options",
    "BITWISE_XOR": "BitwiseXorOptions",
    "RIGHT_SHIFT": "RightShiftOptions",
}
ALIKE = frozenset({"EQUAL", "NOT_EQUAL"})
FUSED = frozenset({"ADD", "SUB", "MUL", "DIV"})
#: Activations that every kernel knows: NONE (most often), RELU, RELU_N1_TO_1, RELU6.
ACTIVATIONS = (0, 0, 0, 0, 0, 1, 2, 3)


def arithmetic(draw: Draw, op: str) -> Case:
    """Draw codes, integers or floats; operands sometimes constant; one scale for all if the operator needs that."""
    (left, right), (made,) = draw.types(op)
    shapes = draw.broadcasting(5 if op not in ("DIV", "POW") else 4)
    a, b = (draw.tensor(str(kind), shape) for kind, shape in zip((left, right), shapes, strict=True))
    if draw.chance(0.7 if op in ALIKE else 0.1):
        b = T(b.type, b.shape, a.scale, a.zero_point)
    shape = np.broadcast_shapes(*shapes)
    fed = [a, b]
    if draw.chance(0.3):
        which = draw.int(0, 1)
        fed[which] = _usable(draw, op, fed[which], which)
    options = dict(activation(draw, op, made))
    return draw.case(
        op,
        fed,
        [_output(draw, op, a, b, made, shape)],
        (OPTIONS[op], options) if op in OPTIONS else None,
        given=lambda t: _given(draw, op, t, t is fed[1]),
    )


def activation(draw: Draw, op: str, made: str) -> list[tuple[str, Any]]:
    """Return the options of operators with a fused activation."""
    if op not in FUSED:
        return []
    fields: list[tuple[str, Any]] = [("fused_activation_function", draw.pick(ACTIVATIONS))]
    if op in ("ADD", "SUB") and made == "int16":
        fields.append(("pot_scale_int16", draw.chance(0.15)))
    return fields


def _output(draw: Draw, op: str, a: T, b: T, made: str, shape: tuple[int, ...]) -> T:
    if made not in QUANTIZED:
        return T(made, shape)
    if op in ("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD") or a.scale is None:
        return T(made, shape, a.scale or draw.scale(), a.zero_point)
    reach = [float(t.scale) * max(abs(code - t.zero_point) for code in CODES[t.type]) for t in (a, b)]
    size = {"MUL": reach[0] * reach[1], "SQUARED_DIFFERENCE": sum(reach) ** 2 / 4, "DIV": 20 * reach[0] / reach[1]}
    scale = draw.near(size.get(op, sum(reach)) / (CODES[made][1] - CODES[made][0]))
    return draw.tensor(made, shape, scale)


def _usable(draw: Draw, op: str, tensor: T, which: int) -> T:
    value = _given(draw, op, tensor, which == 1)
    value = draw.values(tensor.type, tuple(tensor.shape)) if value is None else value
    return T(tensor.type, tensor.shape, tensor.scale, tensor.zero_point, value=value)


def _given(draw: Draw, op: str, tensor: T, second: bool) -> Array | None:
    """Return values for which the operator is defined: divisors other than 0, shifts within the width."""
    shape = tuple(tensor.shape)
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD") and second and tensor.type != "float32":
        values = draw.values(tensor.type, shape)
        zero = values.dtype.type(tensor.zero_point if op == "DIV" and tensor.type in ("uint8", "int8") else 0)
        return np.where(values == zero, values.dtype.type(zero + 1 if zero < 100 else zero - 1), values)
    if op == "FLOOR_DIV" and second and tensor.type == "float32":
        return np.asarray(np.abs(draw.floats(shape)) + np.float32(0.25), np.float32)
    if op == "RIGHT_SHIFT" and second:
        return draw.rng.integers(0, 8 * np.dtype(tensor.type).itemsize, shape).astype(tensor.type)
    if op == "DIV" and not second and tensor.type == "int32":
        return draw.rng.integers(-(2**31), 2**31 - 1, shape).astype(np.int32)
    if op == "POW" and tensor.type == "int32":
        return draw.rng.integers(0 if second else -9, 8, shape).astype(np.int32)
    if op in ALIKE and tensor.type != "bool" and draw.chance(0.8):  # let some be equal
        return draw.rng.integers(0, 4, shape).astype(tensor.type)
    return None


def equal_shapes(draw: Draw, op: str) -> Case:
    """Draw STABLEHLO_* without broadcasting and quantization."""
    kind = str(draw.types(op)[0][0])
    x = T(kind, draw.shape())
    second = T(kind, x.shape)

    def given(tensor: T) -> Array | None:
        if op == "STABLEHLO_SHIFT_LEFT" and tensor is second:
            return draw.rng.integers(0, 8 * np.dtype(kind).itemsize, tuple(x.shape)).astype(kind)
        return None

    options = ("StablehloShiftLeftOptions", {}) if op == "STABLEHLO_SHIFT_LEFT" else None
    return draw.case(op, [x, second], [T(kind, x.shape)], options, given=given)


HLO = ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "AND", "SHIFT_LEFT")
SPECS = dict.fromkeys([f"STABLEHLO_{name}" for name in HLO], equal_shapes) | dict.fromkeys(
    (
        "ADD",
        "SUB",
        "MUL",
        "DIV",
        "MAXIMUM",
        "MINIMUM",
        "POW",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "SQUARED_DIFFERENCE",
        "EQUAL",
        "NOT_EQUAL",
        "LESS",
        "LESS_EQUAL",
        "GREATER",
        "GREATER_EQUAL",
        "ATAN2",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "BITWISE_XOR",
        "RIGHT_SHIFT",
    ),
    arithmetic,
)
