"""Operators on every element, or every pair of elements, by itself: on all codes, or all pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, Sample, samples_of, zero_point
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T
from tflq.engine.kernels.facts import OPERATORS
from tflq.typing import Array

#: Kinds of drawn scales; powers of two put results on ties.
REGIMES = {
    "odd scales": False,
    "ties: scales that are powers of two": True,
    "odd scales, another draw": False,
    "ties: other powers of two": True,
}
FIXED = {op: OPERATORS[op].output for op in ("LOGISTIC", "TANH")}
#: Operators with only one version.
FIRST = frozenset(("HARD_SWISH", "RELU_N1_TO_1"))
RECTIFIERS = ("RELU", "RELU6", "RELU_N1_TO_1")
ARITHMETIC = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions"}
CHOOSING = {"MAXIMUM": "MaximumMinimumOptions", "MINIMUM": "MaximumMinimumOptions"}
COMPARING = {
    "EQUAL": "EqualOptions",
    "NOT_EQUAL": "NotEqualOptions",
    "LESS": "LessOptions",
    "LESS_EQUAL": "LessEqualOptions",
    "GREATER": "GreaterOptions",
    "GREATER_EQUAL": "GreaterEqualOptions",
}
ACTIVATIONS = {0: "no activation", 1: "RELU", 3: "RELU6"}


class Scales:
    """Draws of scales for one regime."""

    def __init__(self, rng: np.random.Generator, powers: bool) -> None:
        self.rng, self.powers = rng, powers

    def near(self, real: float, spread: float = 1.0) -> float:
        """Return a float32 scale around `real`, within 2**spread either way."""
        exponent = np.log2(real) + self.rng.uniform(-spread, spread)
        return float(np.float32(2.0 ** (round(exponent) if self.powers else exponent)))

    def tensor(self, kind: str, shape: tuple[int, ...], real: float) -> T:
        """Return a tensor with values up to about `real`."""
        return T(kind, shape, self.near(real / CODES[kind][1]), zero_point(self.rng, kind))


def drafts(seed: int) -> Iterator[Draft]:
    """Yield unary operators, then those of two operands."""
    rng = np.random.default_rng([seed, 2])
    for aim, powers in REGIMES.items():
        scales = Scales(rng, powers)
        yield from _unary(scales, aim)
        yield from _binary(scales, aim)


def codes(kind: str) -> Array:
    """Return all codes of 8 bits; of 16 bits every 61st, and the ends."""
    low, high = CODES[kind]
    some = np.arange(low, high + 1) if kind != "int16" else np.unique([*range(low, high + 1, 61), -1, 0, 1, high])
    return some.astype(kind)


def _unary(scales: Scales, aim: str) -> Iterator[Draft]:
    for kind, reach in product(KINDS, (1.0, 6.0, 40.0)):
        values = codes(kind)
        shape = values.shape
        x = scales.tensor(kind, shape, reach)
        fed: tuple[Sample, ...] = ((values,),)

        def one(op: str, y: T, options: Any = None, x: T = x, fed: Any = fed, aim: str = aim) -> Draft:
            return Draft(op, f"all codes; {aim}", (x,), (y,), fed, options, 1 if op in FIRST else 2)

        for op, outputs in FIXED.items():
            source = replace(x, scale=2.0**-12, zero_point=0) if kind == "int16" and scales.powers else x
            yield one(op, T(kind, shape, *outputs[kind]), x=source)
        y = scales.tensor(kind, shape, reach)
        for op in RECTIFIERS:
            if kind != "int16" or op != "RELU_N1_TO_1":
                yield one(op, y)
                yield one(op, x, aim="same scales")
        for alpha in (0.1, 0.5, 1.5, -0.3):
            yield one("LEAKY_RELU", y, ("LeakyReluOptions", {"alpha": alpha}))
        if kind != "int16":
            yield one("HARD_SWISH", y, ("HardSwishOptions", {}))
        for other_kind in KINDS:
            if {kind, other_kind} == {"uint8", "int16"}:
                continue
            yield one("QUANTIZE", scales.tensor(other_kind, shape, reach), ("QuantizeOptions", {}))
        yield one("DEQUANTIZE", T("float32", shape), ("DequantizeOptions", {}))


def _binary(scales: Scales, aim: str) -> Iterator[Draft]:
    for kind, reach in product(KINDS, (0.5, 4.0, 30.0)):
        a, b = _operands(scales, kind, reach)
        grown = {"ADD": reach * 2, "SUB": reach * 2, "MUL": reach * reach}
        for (op, table), activation in product(ARITHMETIC.items(), ACTIVATIONS):
            y = scales.tensor(kind, tuple(a.shape), grown[op])
            options: dict[str, Any] = {"fused_activation_function": activation}
            if op != "MUL":
                options["pot_scale_int16"] = False
            said = f"all pairs; {aim}; {ACTIVATIONS[activation]}" if kind != "int16" else f"{aim}"
            yield _pair(op, said, a, b, y, (table, options), 2)
            yield from _broadcast(scales, op, aim, a, b, y, (table, options))
        for op, table in CHOOSING.items():
            same = replace(b, scale=a.scale, zero_point=a.zero_point)
            yield _pair(op, "all pairs", a, same, T(kind, a.shape, a.scale, a.zero_point), (table, {}), 2)
        if kind != "int16":
            for op, table in COMPARING.items():
                yield _pair(op, f"all pairs; {aim}", a, b, T("bool", a.shape), (table, {}), 2)
            y = scales.tensor(kind, tuple(a.shape), reach * reach)
            table = "SquaredDifferenceOptions"
            yield _pair("SQUARED_DIFFERENCE", f"all pairs; {aim}", a, b, y, (table, {}), 2)


def _operands(scales: Scales, kind: str, reach: float) -> tuple[T, T]:
    shape = (256, 256) if kind != "int16" else (32, 33)
    first = scales.tensor(kind, shape, reach)
    return first, scales.tensor(kind, shape, reach * scales.rng.uniform(0.3, 1.0))


def _pair(op: str, aim: str, a: T, b: T, y: T, options: Any, version: int) -> Draft:
    if a.type == "int16":
        samples = samples_of(np.random.default_rng(0), (a, b))
    else:
        samples = (_every_pair(a.type),)
    return Draft(op, aim, (a, b), (y,), samples, options, version)


@cache
def _every_pair(kind: str) -> Sample:
    grid = np.meshgrid(codes(kind), codes(kind), indexing="ij")
    return tuple(map(np.ascontiguousarray, grid))


def _broadcast(scales: Scales, op: str, aim: str, a: T, b: T, y: T, options: Any) -> Iterator[Draft]:
    for one, other in (((2, 3, 7), (7,)), ((5, 1), (1, 6)), ((3, 4), ())):
        inputs = replace(a, shape=one), replace(b, shape=other)
        result = replace(y, shape=np.broadcast_shapes(one, other))
        samples = samples_of(scales.rng, inputs)
        yield Draft(op, f"broadcast; {aim}", inputs, (result,), samples, options, 2)
