"""Functions of each code, quotients, slopes, 16-bit comparisons, sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import CODES, Draft, Sample, samples_of
from tflq.devices.conformance.grids.elementwise import COMPARING, REGIMES, Scales, codes
from tflq.devices.conformance.grids.kinds import kinds, version_of
from tflq.devices.conformance.one_operator import T
from tflq.typing import Array


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


def drafts(seed: int) -> Iterator[Draft]:
    """Yield all of them, with odd scales and with powers of two."""
    rng = np.random.default_rng([seed, 10])
    for (aim, powers), _ in product(_AIMS.items(), range(2)):
        scales = Scales(rng, powers)
        for op, function in FUNCTIONS:
            yield from (_function(scales, f"all codes; {aim}", op, kind, function) for kind in kinds(op))
        yield from (_quotients(scales, aim, kind) for kind in kinds("DIV"))
        yield from (_slopes(scales, aim, kind) for kind in kinds("PRELU"))
        yield from (_products(scales, aim, kind) for kind in kinds("REDUCE_PROD"))
        yield _sums(scales, aim)
    for op, table in COMPARING.items():
        yield from _comparisons(rng, op, table)


def _tensor(scales: Scales, kind: str, reach: float, *, is_low: bool = False) -> T:
    """Return a scalar with values up to about `reach` and a zero point in the middle half, or the lowest quarter."""
    low, high = CODES[kind]
    quarter = (high - low + 1) // 4
    first = low if is_low else low + quarter
    zero = 0 if kind == "int16" else int(scales.rng.integers(first, first + quarter * (1 if is_low else 2)))
    return T(kind, (), scales.near(reach / (high - (low + high) // 2), 0.5), zero)


def _function(scales: Scales, aim: str, op: str, kind: str, function: Function) -> Draft:
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


def _quotients(scales: Scales, aim: str, kind: str) -> Draft:
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


def _slopes(scales: Scales, aim: str, kind: str) -> Draft:
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


def _products(scales: Scales, aim: str, kind: str) -> Draft:
    """Return products of three codes, which are rescaled after each factor."""
    x, y = _tensor(scales, kind, 1.5), _tensor(scales, kind, 3.0)
    x, y = replace(x, shape=(64, 3, 4)), replace(y, shape=(64, 4))
    return _along_rows("REDUCE_PROD", f"products of 3; {aim}", x, y, samples_of(scales.rng, (x,)))


def _sums(scales: Scales, aim: str) -> Draft:
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
