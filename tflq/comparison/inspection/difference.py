"""The difference of two arrays, bit by bit, and how far values lie apart.

The difference of two arrays, bit by bit: in LSB for integers, in units in the last place for floats.

Equal bits have one meaning: types, shapes and elements are equal; NaN equals NaN for any payload; -0.0 is not 0.0;
strings are compared by their text. `same_bits`, `bits_of` and `digest_of` share it with `difference`.

Measures of how far values lie from their reference: signal to noise, and divergences of scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.typing import Array

#: Differences beyond this many LSB share the histogram's outermost classes.
HISTOGRAM_REACH = 16


@dataclass(frozen=True, slots=True)
class First:
    """The first differing element, in C order."""

    sample: int
    index: tuple[int, ...]
    expected: int | float | bool | str
    got: int | float | bool | str


@dataclass(frozen=True, slots=True)
class Difference:
    """The result of comparing `elements` elements; `problem` is set if types or shapes forbid it.

    `largest`, `bias` and `histogram` describe got - expected in `unit` ("LSB", "ULP", or "" if there is none). `bias`
    is its mean over the differing elements. NaN against a number counts as differing and has no distance. `at_scale` is
    the largest difference of floats in units in the last place of the largest finite magnitude expected, rounded up: a
    measure of differences by the order of additions, even under cancellation. It is None if a NaN or an infinity is
    compared with another value, and for types without these. `absolute` and `relative` are the largest differences of
    finite floats in their own units and against the expected value (infinite against 0); None for other types. `kinds`
    counts the differing floats by the special values that they got or lost.
    """

    elements: int
    differing: int
    unit: str = ""
    largest: int = 0
    above: int = 0
    below: int = 0
    bias: float = 0.0
    histogram: tuple[tuple[int, int], ...] = ()  # (difference, clipped to the reach; elements)
    first: First | None = None
    problem: str = ""
    at_scale: int | None = None
    absolute: float | None = None
    relative: float | None = None
    kinds: tuple[tuple[str, int], ...] = ()

    @property
    def same(self) -> bool:
        """True if every bit agrees."""
        return not self.differing and not self.problem


def with_one_nan(array: Array) -> Array:
    """Return an array with the same bits in every NaN: arrays without a difference then have equal bytes."""
    return np.where(np.isnan(array), array.dtype.type(np.nan), array) if array.dtype.kind == "f" else array


def same_bits(one: Array | None, other: Array | None) -> bool:
    """Return whether two arrays have equal bits; None equals only None."""
    if one is None or other is None:
        return one is other
    return _kind(one) == _kind(other) and one.shape == other.shape and not unequal(one, other).any()


def bits_of(value: Array) -> bytes:
    """Return bytes that are equal for arrays of one type and shape with equal bits."""
    if value.dtype.kind in "OSU":
        return repr(value.tolist()).encode()
    plain = np.ascontiguousarray(value, value.dtype.newbyteorder("="))
    return with_one_nan(plain.view(f"f{plain.itemsize // 2}") if plain.dtype.kind == "c" else plain).tobytes()


def digest_of(values: Iterable[Array | None]) -> bytes:
    """Return 16 bytes that are equal for sequences of arrays with equal bits. None can be among them."""
    whole = blake2b(digest_size=16)
    for value in values:
        whole.update(b"none" if value is None else f"{_kind(value)}{value.shape}".encode() + bits_of(value))
    return whole.digest()


def difference(expected: Array, got: Array, sample: int = 0) -> Difference:
    """Compare bit by bit. NaNs are equal for any payload; -0.0 is not equal to 0.0."""
    if _kind(expected) != _kind(got):
        return Difference(expected.size, 0, problem=f"element type: expected {expected.dtype}, got {got.dtype}")
    if expected.shape != got.shape:
        return Difference(expected.size, 0, problem=f"shape: expected {list(expected.shape)}, got {list(got.shape)}")
    apart = unequal(expected, got)
    count = int(np.count_nonzero(apart))
    if not count:
        return Difference(expected.size, 0, _unit(expected))
    where = np.unravel_index(int(np.argmax(apart)), apart.shape)
    first = First(sample, tuple(int(i) for i in where), _plain(expected[where]), _plain(got[where]))
    before, after = expected[apart], got[apart]
    distances, kinds = _distances(before, after), _kinds(before, after)
    if not distances.size:
        return Difference(expected.size, count, _unit(expected), first=first, kinds=kinds)
    absolute, relative = _sizes(expected, got)
    steps, counts = np.unique(np.clip(distances, -HISTOGRAM_REACH, HISTOGRAM_REACH), return_counts=True)
    return Difference(
        elements=expected.size,
        differing=count,
        unit=_unit(expected),
        largest=int(np.abs(distances).max()),
        above=int(np.count_nonzero(distances > 0)),
        below=int(np.count_nonzero(distances < 0)),
        bias=int(distances.sum()) / distances.size,
        histogram=tuple(zip(map(int, steps), map(int, counts), strict=True)),
        first=first,
        at_scale=_at_scale(expected, got),
        absolute=absolute,
        relative=relative,
        kinds=kinds,
    )


def merge(parts: Iterable[Difference]) -> Difference:
    """Return one difference for several samples of the same tensor."""
    parts = tuple(parts)
    measured = [p for p in parts if p.above + p.below]
    count = sum(p.above + p.below for p in measured)
    apart = [p.at_scale for p in parts if not p.same]
    histogram, kinds = Counter[int](), Counter[str]()
    for part in parts:
        histogram.update(dict(part.histogram))
        kinds.update(dict(part.kinds))
    return Difference(
        elements=sum(p.elements for p in parts),
        differing=sum(p.differing for p in parts),
        unit=next((p.unit for p in parts if p.unit), ""),
        largest=max((p.largest for p in parts), default=0),
        above=sum(p.above for p in parts),
        below=sum(p.below for p in parts),
        bias=sum(p.bias * (p.above + p.below) for p in measured) / count if count else 0.0,
        histogram=tuple(sorted(histogram.items())),
        first=next((p.first for p in parts if p.first), None),
        problem=next((p.problem for p in parts if p.problem), ""),
        at_scale=max((n for n in apart if n is not None), default=None) if None not in apart else None,
        absolute=max((p.absolute for p in parts if p.absolute is not None), default=None),
        relative=max((p.relative for p in parts if p.relative is not None), default=None),
        kinds=tuple(sorted(kinds.items())),
    )


def _kind(value: Array) -> object:
    return "string" if value.dtype.kind in "OSU" else value.dtype.newbyteorder("=")


def _unit(value: Array) -> str:
    return {"i": "LSB", "u": "LSB", "f": "ULP"}.get(value.dtype.kind, "")


def unequal(expected: Array, got: Array) -> NDArray[np.bool_]:
    """Return a mask of differing elements in arrays of equal types and shapes; see `difference`."""
    if expected.dtype.kind == "f":
        both_nan = np.isnan(expected) & np.isnan(got)
        apart: NDArray[np.bool_] = (_bits(expected) != _bits(got)) & ~both_nan
        return apart
    if expected.dtype.kind == "c":
        parts = [unequal(expected.real, got.real), unequal(expected.imag, got.imag)]
        return parts[0] | parts[1]
    return np.asarray(expected != got, bool)


def _bits(value: Array) -> Array:
    return np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}").reshape(value.shape)


def _distances(expected: Array, got: Array) -> Array:
    """Return got - expected as exact integers, for elements with a distance: int64, or int for 64-bit types."""
    kind = expected.dtype.kind
    if kind in "iu":
        a, b = expected, got
    elif kind == "f":
        numbers = ~(np.isnan(expected) | np.isnan(got))
        a, b = _ordinals(expected[numbers]), _ordinals(got[numbers])
    else:
        return np.zeros(0, np.int64)
    wide = object if a.dtype.itemsize == 8 else np.int64  # int64 differences may not fit in int64
    return np.asarray(b.astype(wide) - a.astype(wide))


def _kinds(expected: Array, got: Array) -> tuple[tuple[str, int], ...]:
    """Count floats that differ by the special values they got or lost, in alphabetical order."""
    if expected.dtype.kind != "f":
        return ()
    nan, nan_before = np.isnan(got), np.isnan(expected)
    infinite, infinite_before = np.isinf(got), np.isinf(expected)
    counts = {
        "NaN": nan & ~nan_before,
        "NaN lost": nan_before & ~nan,
        "infinity": infinite & ~infinite_before,
        "infinity lost": infinite_before & ~infinite,
        "sign of infinity": infinite & infinite_before,
        "sign of zero": (got == 0) & (expected == 0),
    }
    return tuple((kind, n) for kind, found in sorted(counts.items()) if (n := int(np.count_nonzero(found))))


def _at_scale(expected: Array, got: Array) -> int | None:
    """Return the largest difference of arrays that differ, in float64."""
    if expected.dtype.kind != "f":
        return None
    matched = (np.isnan(expected) & np.isnan(got)) | (expected == got)
    wide = np.abs(got[~matched].astype(np.float64) - expected[~matched])
    if not np.isfinite(wide).all():
        return None
    peak = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    return math.ceil(float(wide.max(initial=0)) / _last_place(peak))


def _sizes(expected: Array, got: Array) -> tuple[float | None, float | None]:
    """Return the largest absolute and relative difference of the elements that are finite in both, in float64."""
    if expected.dtype.kind != "f":
        return None, None
    finite = np.isfinite(expected) & np.isfinite(got)
    if not finite.any():
        return None, None
    before, apart = expected[finite].astype(np.float64), np.abs(got[finite].astype(np.float64) - expected[finite])
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(apart == 0, 0.0, apart / np.abs(before))
    return float(apart.max()), float(relative.max())


def _last_place(value: Any) -> float:
    """Return a unit in the last place of a float that is not negative."""
    info = np.finfo(value.dtype)
    exponent = max(int(np.frexp(value)[1]) - 1, int(info.minexp)) if value else int(info.minexp)
    return math.ldexp(1.0, exponent - int(info.nmant))


def _ordinals(value: Array) -> Array:
    """Return floats numbered in order: neighbours differ by one, and so do -0.0 and 0.0."""
    codes = np.ascontiguousarray(value).view(f"i{value.dtype.itemsize}")
    return np.where(codes < 0, ~(codes & np.iinfo(codes.dtype).max), codes)


def _plain(value: Any) -> int | float | bool | str:
    """Return a Python value that JSON can represent, as text if there is no other."""
    if isinstance(value, (bytes, str)):
        return repr(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (bool, int, float)) else str(plain)


Reals = NDArray[np.float64]


def decibels(reference: Array, other: Array) -> float:
    """Return 10 log10(sum reference^2 / sum (reference - other)^2), dB; inf without noise, -inf without signal.

    Equal values, also infinite ones and NaN, are no noise. Where only one is finite, the noise is infinite.
    """
    f, q = np.asarray(reference, np.float64).ravel(), np.asarray(other, np.float64).ravel()
    apart = ~((f == q) | (np.isnan(f) & np.isnan(q)))
    if not apart.any():
        return math.inf
    with np.errstate(invalid="ignore", over="ignore"):
        noise = float(np.sum(np.square(f[apart] - q[apart])))
        signal = float(np.sum(np.square(f[np.isfinite(f)])))
    if not math.isfinite(noise) or not signal:
        return -math.inf
    return 10 * math.log10(signal / noise) if noise else math.inf


def divergences(reference: Array, scores: Array) -> Reals:
    """Return the KL divergences, nats, of the distributions that scores define, by row: [..., C] to [...]."""
    logs = log_shares(reference)
    sums: Reals = np.sum(np.exp(logs) * (logs - log_shares(scores)), axis=-1)
    return sums


def log_shares(scores: Array) -> Reals:
    """Return the logarithm of SOFTMAX with beta 1 along the last axis."""
    real = np.asarray(scores, np.float64)
    below = real - real.max(axis=-1, keepdims=True)
    shares: Reals = below - np.log(np.exp(below).sum(axis=-1, keepdims=True))
    return shares
