"""Cases from a search: scales, codes and biases for which multipliers of different precision give different codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.grids.elementwise import codes
from tflq.devices.suites.draft import CODES, KINDS, Draft, Sample, T, zero_point
from tflq.engine.numerics.multiplier import quantize_multiplier, round_twice, rounding_twice
from tflq.typing import Array

#: Number of draws after which a search ends with its result so far.
_DRAWS = 20_000
_TIES = "ties: scales that are powers of two"
#: Halves of codes from one edge to the next, where an output changes.
_EDGES = np.arange(-100, 101) + 0.5


def in_float32(real: float) -> float:
    """Return a multiplier computed in float32."""
    return float(np.float32(real))


def of_bits(bits: int) -> Callable[[float], float]:
    """Return a function that shortens a multiplier's mantissa to `bits` bits."""

    def rounded(real: float) -> float:
        fraction, exponent = math.frexp(real)
        return math.ldexp(math.floor(fraction * 2**bits + 0.5), exponent - bits)

    return rounded


#: Ways in which devices make multipliers less precise.
PRECISIONS: Mapping[str, Callable[[float], float]] = {
    "multiplier in float32": in_float32,
    "multiplier of 15 bits": of_bits(15),
}


def rescale(values: Array, real: float) -> Array:
    """Return integers times a multiplier, as the reference kernels compute it: a 31-bit mantissa, two roundings."""
    mantissa, shift = quantize_multiplier(real)
    stages = rounding_twice(np.asarray(max(-shift, 0), np.int64))
    rounded: Array = round_twice((values.astype(np.int64) << max(shift, 0)) * mantissa, *stages)
    return rounded


def rescale_once(values: Array, real: float) -> Array:
    """Return the product rounded once, half away from zero."""
    mantissa, shift = quantize_multiplier(real)
    products = values.astype(np.int64) * mantissa
    rounded: Array = np.sign(products) * ((np.abs(products) + (1 << (30 - shift))) >> (31 - shift))
    return rounded


def parting_sum(real: float, other: float) -> int | None:
    """Return a sum that two multipliers map to different codes; of several, one far inside the widest gap."""
    ends = np.ceil(_EDGES / real), np.ceil(_EDGES / other)
    at = int(np.argmax(np.abs(ends[0] - ends[1])))
    low, high = sorted((int(ends[0][at]), int(ends[1][at])))
    return None if low == high else low + (high - low) // 2


def drafts(seed: int) -> Iterator[Draft]:
    """Yield operators of one operand, then sums and products of two."""
    rng = np.random.default_rng([seed, 7])
    for kind in KINDS:
        yield from _one_operand(rng, kind)
        yield from _two_operands(rng, kind)


def _one_operand(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    fed = codes(kind)
    for made in KINDS:
        if {kind, made} == {"uint8", "int16"}:
            continue
        for ratio in (0.5, 0.25):
            x, y = T(kind, fed.shape, 2.0**-4, _zero(rng, kind)), T(made, fed.shape, 2.0**-4 / ratio, _zero(rng, made))
            yield _unary("QUANTIZE", f"all codes; {_TIES}", x, y, fed)
        for aim, precision in PRECISIONS.items():
            yield _unary("QUANTIZE", f"all codes; {aim}", *_parting(rng, kind, made, fed, precision))
    if kind == "int16":
        return
    options = ("LeakyReluOptions", {"alpha": 0.5})
    parting = _parting(rng, kind, kind, fed, of_bits(15), positive=True)
    yield _unary("LEAKY_RELU", "all codes; multiplier of 15 bits", *parting, options)
    if kind == "uint8":  # one sum per row: shows every code directly, next to the zero point
        x, y, _ = _parting(rng, kind, kind, fed, of_bits(15))
        rows = np.stack([fed, np.full(fed.shape, x.zero_point, kind)], axis=1)
        inputs = T(kind, rows.shape, x.scale, x.zero_point), T("int32", (1,), value=np.array([1]))
        reduced = ("ReducerOptions", {"keep_dims": False})
        yield Draft("SUM", "sums of 2 codes; multiplier of 15 bits", inputs, (y,), ((rows,),), reduced, 2)


def _unary(op: str, aim: str, x: T, y: T, fed: Array, options: Any = ("QuantizeOptions", {})) -> Draft:
    return Draft(op, aim, (x,), (y,), ((fed,),), options, 2)


def _parting(
    rng: np.random.Generator,
    kind: str,
    made: str,
    fed: Array,
    precision: Callable[[float], float],
    *,
    positive: bool = False,
) -> tuple[T, T, Array]:
    """Return operands and codes, one of which that multiplier rounds differently.

    With `positive`, this code is positive.
    """
    x = y = T(kind, fed.shape, 1.0)
    low, high = CODES[kind]
    every = np.arange(low, high + 1, dtype=np.int64)
    for _ in range(_DRAWS):
        x = T(kind, fed.shape, drawn_scale(rng, -8, -3), _zero(rng, kind))
        values = every - int(x.zero_point)
        near = 2.0 ** rng.uniform(-0.9, 0.9) * CODES[made][1] / CODES[kind][1]
        tie = int(rng.choice(values[values > 0]))  # comes to lie next to a half
        ratio = (math.floor(tie * near) + 0.5) / tie
        y = T(made, fed.shape, float(np.float32(float(x.scale) / ratio)), _zero(rng, made))
        real = float(x.scale) / float(y.scale)
        exact, other = (rescale(values, r) + int(y.zero_point) for r in (real, precision(real)))
        parts = (exact != other) & (np.minimum(exact, other) >= CODES[made][0])
        parts &= (np.maximum(exact, other) <= CODES[made][1]) & ((values > 0) | (not positive))
        if np.any(parts):
            fed = fed if kind != "int16" else np.append(fed, every[parts][:8].astype(kind))
            break
    return replace(x, shape=fed.shape), replace(y, shape=fed.shape), fed


def _two_operands(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    every = codes(kind) if kind != "int16" else np.arange(-16, 17, dtype=np.int16)
    grid: Sample = tuple(np.ascontiguousarray(a) for a in np.meshgrid(every, every, indexing="ij"))
    shape = grid[0].shape
    for op, ratio in (("ADD", 2.0), ("ADD", 4.0), ("SUB", 2.0), ("SUB", 4.0), ("MUL", 0.5), ("MUL", 0.25)):
        scale = ratio * 2.0**-4 if op != "MUL" else 2.0**-8 / ratio
        a, b = (T(kind, shape, 2.0**-4, _zero(rng, kind)) for _ in range(2))
        yield _binary(op, f"all pairs; {_TIES}", a, b, T(kind, shape, scale, _zero(rng, kind)), grid)
    for op, aim in product(("ADD", "SUB"), _SUMS) if kind != "int16" else ():
        for _ in range(2):
            yield _binary(op, f"all pairs; {aim}", *_parting_sums(rng, kind, op, every, _SUMS[aim]), grid)


def _parting_sums(
    rng: np.random.Generator, kind: str, op: str, every: Array, otherwise: Callable[..., Array]
) -> tuple[T, T, T]:
    """Return two operands and a result for which another computation changes the code of some pair."""
    low, high = CODES[kind]
    shape, values = (every.size, every.size), every.astype(np.int64)
    while True:
        a, b = (T(kind, shape, drawn_scale(rng, -6, -4), _zero(rng, kind)) for _ in range(2))
        y = T(kind, shape, drawn_scale(rng, -5, -4), _zero(rng, kind))
        exact, other = (sums(op, values, (a, b, y)) for sums in (_sums, otherwise))
        if np.any((exact != other) & (np.minimum(exact, other) >= low) & (np.maximum(exact, other) <= high)):
            return a, b, y


def _sums(
    op: str,
    every: Array,
    operands: tuple[T, T, T],
    width: type[np.floating[Any]] = np.float64,
    scaled: Callable[[Array, float], Array] = rescale,
) -> Array:
    """Return all sums or differences of 8-bit codes; `width` is the type in which multipliers are computed."""
    a, b, y = operands
    first, second = np.float32(a.scale), np.float32(b.scale)
    twice = width(np.float32(2) * max(first, second))
    p, q = (
        scaled((every - int(t.zero_point)) << 20, float(width(scale) / twice)) for t, scale in ((a, first), (b, second))
    )
    total = p[:, None] + (q if op == "ADD" else -q)
    return scaled(total, float(twice / width(np.float32(1 << 20) * np.float32(y.scale)))) + int(y.zero_point)


#: Ways in which devices add differently.
_SUMS: Mapping[str, Callable[..., Array]] = {
    "multiplier in float32": partial(_sums, width=np.float32),
    "one rounding, half away from zero": partial(_sums, scaled=rescale_once),
}


def _binary(op: str, aim: str, a: T, b: T, y: T, grid: Sample) -> Draft:
    options: dict[str, Any] = {"fused_activation_function": 0}
    if op != "MUL":
        options["pot_scale_int16"] = False
    return Draft(op, aim, (a, b), (y,), (grid,), (f"{op.capitalize()}Options", options), 2)


def _zero(rng: np.random.Generator, kind: str) -> int:
    """Return a zero point in the middle half of the range, with codes on both sides."""
    return zero_point(rng, kind) // 2 + (64 if kind == "uint8" else 0)


def drawn_scale(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a scale from 2^low to 2^high, evenly by its logarithm and rounded to float32."""
    return float(np.float32(2.0 ** rng.uniform(low, high)))
