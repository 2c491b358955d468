"""Operators on every element: functions, quotients, comparisons, sums.

Operators on every element, or every pair of elements, by itself: on all codes, or all pairs of them.

Functions of each code, quotients, slopes, 16-bit comparisons, sums and products along an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.suites.draft import CODES, KINDS, Draft, Sample, T, kinds, samples_of, version_of, zero_point
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


class ElementScales:
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
        scales = ElementScales(rng, powers)
        yield from _unary(scales, aim)
        yield from _binary(scales, aim)


def codes(kind: str) -> Array:
    """Return all codes of 8 bits; of 16 bits every 61st, and the ends."""
    low, high = CODES[kind]
    some = np.arange(low, high + 1) if kind != "int16" else np.unique([*range(low, high + 1, 61), -1, 0, 1, high])
    return some.astype(kind)


def _unary(scales: ElementScales, aim: str) -> Iterator[Draft]:
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


def _binary(scales: ElementScales, aim: str) -> Iterator[Draft]:
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


def _operands(scales: ElementScales, kind: str, reach: float) -> tuple[T, T]:
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


def _broadcast(scales: ElementScales, op: str, aim: str, a: T, b: T, y: T, options: Any) -> Iterator[Draft]:
    for one, other in (((2, 3, 7), (7,)), ((5, 1), (1, 6)), ((3, 4), ())):
        inputs = replace(a, shape=one), replace(b, shape=other)
        result = replace(y, shape=np.broadcast_shapes(one, other))
        samples = samples_of(scales.rng, inputs)
        yield Draft(op, f"broadcast; {aim}", inputs, (result,), samples, options, 2)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of each element. `reach` is about the largest real that is fed; `real` the function of reals.

    `is_of_positives`: most codes are above the zero point, and if it `raises` for others, only these are fed.
    `is_plain`: scales are equal, and zero points 0.
    """

    reach: float
    real: Callable[[Array], Array]
    options: tuple[str, Mapping[str, Any]] | None = None
    is_of_positives: bool = False
    raises: bool = False
    is_plain: bool = False


def _from_minus_one(reals: Array) -> Array:
    return np.maximum(reals, -1.0)


#: Functions in the order of their cases; GELU occurs once for each form.
FUNCTIONS: tuple[tuple[str, Function], ...] = (
    ("ABS", Function(4.0, np.abs, ("AbsOptions", {}))),
    ("ELU", Function(4.0, _from_minus_one)),
    ("EXP", Function(3.0, np.exp, ("ExpOptions", {}))),
    ("GELU", Function(4.0, _from_minus_one, ("GeluOptions", {"approximate": False}))),
    ("GELU", Function(4.0, _from_minus_one, ("GeluOptions", {"approximate": True}))),
    ("LOG", Function(8.0, np.log, is_of_positives=True)),
    ("NEG", Function(4.0, np.negative, ("NegOptions", {}), is_plain=True)),
    ("RELU_0_TO_1", Function(2.0, np.ones_like)),
    ("RSQRT", Function(4.0, lambda x: 1 / np.sqrt(x), is_of_positives=True, raises=True)),
    ("SQRT", Function(4.0, np.sqrt, is_of_positives=True, raises=True)),
)
#: Draws of scales for the aims of these cases, in order.
_AIMS = dict(list(REGIMES.items())[:2])
#: Columns of slopes and of factors.
_COLUMNS = 5


def functions_drafts(seed: int) -> Iterator[Draft]:
    """Yield all of them, with odd scales and with powers of two."""
    rng = np.random.default_rng([seed, 10])
    for (aim, powers), _ in product(_AIMS.items(), range(2)):
        scales = ElementScales(rng, powers)
        for op, function in FUNCTIONS:
            yield from (_function(scales, f"all codes; {aim}", op, kind, function) for kind in kinds(op))
        yield from (_quotients(scales, aim, kind) for kind in kinds("DIV"))
        yield from (_slopes(scales, aim, kind) for kind in kinds("PRELU"))
        yield from (_products(scales, aim, kind) for kind in kinds("REDUCE_PROD"))
        yield _sums(scales, aim)
    for op, table in COMPARING.items():
        yield from _comparisons(rng, op, table)


def _tensor(scales: ElementScales, kind: str, reach: float, *, is_low: bool = False) -> T:
    """Return a scalar with values up to about `reach` and a zero point in the middle half, or the lowest quarter."""
    low, high = CODES[kind]
    quarter = (high - low + 1) // 4
    first = low if is_low else low + quarter
    zero = 0 if kind == "int16" else int(scales.rng.integers(first, first + quarter * (1 if is_low else 2)))
    return T(kind, (), scales.near(reach / (high - (low + high) // 2), 0.5), zero)


def _function(scales: ElementScales, aim: str, op: str, kind: str, function: Function) -> Draft:
    x = _tensor(scales, kind, function.reach, is_low=function.is_of_positives)
    fed = codes(kind)
    reals = (fed.astype(np.int64) - int(x.zero_point)) * float(x.scale)
    with np.errstate(all="ignore"):
        results = function.real(reals)
    results = results[np.isfinite(results)]
    y = _tensor(scales, kind, float(np.percentile(np.abs(results), 90)), is_low=bool(results.min() >= 0))
    if function.is_plain:
        x = y = replace(x, zero_point=0)
    fed = fed[reals >= 0] if function.raises else fed
    if op == "GELU" and function.options is not None:
        aim += "; tanh" if function.options[1]["approximate"] else "; erf"
    x, y = (replace(t, shape=fed.shape) for t in (x, y))
    return Draft(op, aim, (x,), (y,), ((fed,),), function.options, version_of(op, kind))


def _quotients(scales: ElementScales, aim: str, kind: str) -> Draft:
    """Return all pairs of codes with a defined quotient, of at least half a code.

    LiteRT shifts smaller ones by more bits than a word has. No divisor is the zero point, or the code 0, which some
    releases refuse.
    """
    few = codes(kind) if kind != "int16" else codes(kind)[::17]
    a, b, y = (_tensor(scales, kind, reach) for reach in (4.0, 2.0, 8.0))
    x, d = np.meshgrid(few, few[(few != b.zero_point) & (few != 0)], indexing="ij")
    reals = [(one.astype(np.int64) - int(t.zero_point)) * float(t.scale) for one, t in ((x, a), (d, b))]
    x = np.where(np.abs(reals[0] / reals[1]) < 0.5 * float(y.scale), few[-1], x)
    inputs = tuple(replace(t, shape=x.shape) for t in (a, b))
    fed = tuple(np.ascontiguousarray(one) for one in (x, d))
    options = ("DivOptions", {"fused_activation_function": 0})
    y = replace(y, shape=x.shape)
    return Draft("DIV", f"all pairs; {aim}", inputs, (y,), (fed,), options, version_of("DIV", kind))


def _slopes(scales: ElementScales, aim: str, kind: str) -> Draft:
    """Return all codes by slopes that broadcast; those of int16 are int8."""
    column = codes(kind)[:, None]
    fed = np.ascontiguousarray(np.broadcast_to(column, (column.size, _COLUMNS)))
    small = "int8" if kind == "int16" else kind
    low, high = CODES[small]
    value = np.array([high, low, 1, *scales.rng.integers(low, high, _COLUMNS - 3)])
    alpha = replace(_tensor(scales, small, 1.5), shape=(_COLUMNS,), value=value)
    alpha = replace(alpha, zero_point=0) if kind == "int16" else alpha
    x, y = (replace(_tensor(scales, kind, 4.0), shape=fed.shape) for _ in range(2))
    return Draft("PRELU", f"all codes; {aim}", (x, alpha), (y,), ((fed,),), None, version_of("PRELU", kind))


def _along_rows(op: str, aim: str, x: T, y: T, samples: tuple[Sample, ...]) -> Draft:
    axis = T("int32", (1,), value=np.array([1]))
    options = ("ReducerOptions", {"keep_dims": False})
    return Draft(op, aim, (x, axis), (y,), samples, options, version_of(op, x.type))


def _products(scales: ElementScales, aim: str, kind: str) -> Draft:
    """Return products of three codes, which are rescaled after each factor."""
    x, y = _tensor(scales, kind, 1.5), _tensor(scales, kind, 3.0)
    x, y = replace(x, shape=(64, 3, 4)), replace(y, shape=(64, 4))
    return _along_rows("REDUCE_PROD", f"products of 3; {aim}", x, y, samples_of(scales.rng, (x,)))


def _sums(scales: ElementScales, aim: str) -> Draft:
    """Return sums of int8 codes from 0 to 127, whose scaled results are, too.

    LiteRT's reference kernel reads codes of int8 as uint8, and the codes of both are equal there.
    """
    x = replace(_tensor(scales, "int8", 4.0), shape=(64, 6, 4), zero_point=0)
    y = T("int8", (64, 4), scales.near(float(x.scale) * 6, 0.5), 0)
    fed: Array = scales.rng.integers(0, 128, x.shape).astype(np.int8)
    if fed.sum(axis=1, dtype=np.int64).max() * float(x.scale) > 127 * float(y.scale):
        y = replace(y, scale=2 * float(y.scale))
    return _along_rows("SUM", f"sums of 6 codes from 0 to 127; {aim}", x, y, ((fed,),))


def _comparisons(rng: np.random.Generator, op: str, table: str) -> Iterator[Draft]:
    """Yield codes of 16 bits with equal scales: all near pairs, and both ends."""
    near = np.arange(-8, 9)
    pairs: Mapping[str, Callable[[], list[Array]]] = {
        "all near pairs": lambda: [a.astype(np.int16) for a in np.meshgrid(near, near, indexing="ij")],
        "ends": lambda: [rng.choice([-32768, -32767, -1, 0, 32766, 32767], (31, 17)).astype(np.int16) for _ in "ab"],
    }
    for aim, draw in pairs.items():
        fed = tuple(np.ascontiguousarray(one) for one in draw())
        a = T("int16", fed[0].shape, 2.0**-12, 0)
        version = version_of(op, "int16")
        yield Draft(op, aim, (a, a), (T("bool", a.shape),), (fed,), (table, {}), version)
