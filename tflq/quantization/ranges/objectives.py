"""The loss of a range, the points it is measured on, and rules of quantizers.

The data that a range is searched for: weighted points, one row per channel.

Rules by which a range becomes a scale and a zero point. Each widens the range to hold 0, which is then exact.

The loss of a range: the distance of quantized values from the values, one number per row. Less is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.checks import code_limits
from tflq.errors import OptionError
from tflq.model.ir import TensorType
from tflq.quantization.params import Params, Range, asymmetric, symmetric, usable
from tflq.quantization.ranges.observers import Histogram
from tflq.quantization.recipe import Objective, RangeRule
from tflq.typing import Array, Reals


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """`values` [C, N] float64; `counts` [C, N], or [1, 1] if all have the same weight."""

    values: Reals
    counts: Reals

    @staticmethod
    def of_values(values: Array, axis: int | None = None) -> Points:
        """Return each element once: the whole tensor as one row, or one row per index along `axis`."""
        return Points(rows_of(values, axis).astype(np.float64), np.ones((1, 1)))

    @staticmethod
    def of_histogram(histogram: Histogram) -> Points:
        """Return the mean value of each occupied bin, weighted by its count."""
        occupied = histogram.counts > 0
        counts = histogram.counts[occupied]
        return Points((histogram.sums[occupied] / counts)[None], counts[None])

    @property
    def range(self) -> Range:
        """The range from the least to the greatest value of each row; 0 to 0 if there are none."""
        if not self.values.shape[1]:
            return Range(np.zeros(len(self.values)), np.zeros(len(self.values)))
        return Range(self.values.min(axis=1), self.values.max(axis=1))

    def binned(self, bins: int = 2048) -> Points:
        """Return each row's values gathered in equal bins over its own range, at most one per value.

        The result holds mean value and count of every bin, ascending. Bins without values have their centre as value
        and count 0.
        """
        rows, whole = len(self.values), self.range
        bins = max(1, min(bins, self.values.shape[1]))
        width = np.maximum((whole.high - whole.low) / bins, np.finfo(np.float64).tiny)[:, None]
        index = np.minimum(((self.values - whole.low[:, None]) / width).astype(np.int64), bins - 1)
        flat = (index + bins * np.arange(rows)[:, None]).ravel()
        weights = np.broadcast_to(self.counts, self.values.shape)
        counts = np.bincount(flat, weights.ravel(), rows * bins).reshape(rows, bins).astype(np.float64)
        sums = np.bincount(flat, (weights * self.values).ravel(), rows * bins).reshape(rows, bins)
        centres = whole.low[:, None] + (np.arange(bins) + 0.5) * width
        return Points(np.divide(sums, counts, out=centres, where=counts > 0), counts)

    def joined(self, other: Points) -> Points:
        """Return the points of both, row by row."""
        counts = [np.broadcast_to(points.counts, points.values.shape) for points in (self, other)]
        return Points(np.concatenate([self.values, other.values], axis=1), np.concatenate(counts, axis=1))


def rows_of(values: Array, axis: int | None) -> Array:
    """Return a tensor as one row, or with one row per index along `axis`."""
    return values.reshape(1, -1) if axis is None else np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)


def from_rows(rows: Array, shape: tuple[int, ...], axis: int | None) -> Array:
    """Return the tensor of that shape, the inverse of `rows_of`."""
    if axis is None:
        return rows.reshape(shape)
    return np.moveaxis(rows.reshape(shape[axis], *shape[:axis], *shape[axis + 1 :]), 0, axis)


@dataclass(frozen=True, slots=True)
class Quantizer:
    """A rule for codes of one type. SYMMETRIC and UNSIGNED need signed codes, and raise OptionError otherwise."""

    rule: RangeRule
    type: TensorType

    def __post_init__(self) -> None:
        if code_limits(self.type)[0] == 0 and self.rule in (RangeRule.SYMMETRIC, RangeRule.UNSIGNED):
            raise OptionError(
                f"rule {self.rule.value} needs signed codes", expected="int8 or int16", got=self.type.label
            )

    @property
    def one_sided(self) -> bool:
        """True if one magnitude defines the whole range."""
        return self.rule is RangeRule.SYMMETRIC or self.type == TensorType.INT16

    @property
    def codes(self) -> tuple[int, int]:
        """Least and greatest code that may be used."""
        low, high = code_limits(self.type)
        return (-high if self.one_sided else low), high

    def params(self, span: Range) -> Params:
        """Return scale and zero point of each of the range's channels."""
        if self.one_sided:
            return symmetric(span, self.type)
        return _RULES[self.rule](span, self.type)

    def nearest(self, values: Reals, span: Range) -> Reals:
        """Return `values` [C, N] after quantization to the range [C] and back, in float64."""
        params = self.params(span)
        scale, zero = params.scale.astype(np.float64)[:, None], params.zero_point[:, None]
        low, high = self.codes
        steps = np.rint(values / scale)
        np.clip(steps, low - zero, high - zero, out=steps)
        steps *= scale
        return steps


def extend(span: Range, type_: TensorType) -> Params:
    """Return parameters that lose nothing of the range: one end moves outwards until the zero point is an integer."""
    low, high = np.minimum(span.low, 0.0), np.maximum(span.high, 0.0)
    least, greatest = code_limits(type_)
    steps = greatest - least
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = steps * -low / (high - low)  # distance of the zero point from the least code
        down, up = np.floor(exact), np.ceil(exact)
        raised = np.where(down > 0, -low * (steps - down) / down, np.inf)  # the high end, if the zero point goes down
        lowered = np.where(up < steps, -high * up / (steps - up), -np.inf)  # the low end, if it goes up
        raise_high = raised - high <= low - lowered
        whole = np.abs(exact - np.rint(exact)) <= _WHOLE
        width = np.where(whole, high - low, np.where(raise_high, raised - low, high - lowered))
        zero = np.where(whole, np.rint(exact), np.where(raise_high, down, up))
    empty = low == high
    scale = usable(np.where(empty, 0.0, width / steps))
    return Params(type_, scale, np.where(empty, least, least + zero).astype(np.int64))


#: The tolerance within which a zero point counts as an integer (nnlib's own).
_WHOLE = 2.0**-14


def unsigned(span: Range, type_: TensorType) -> Params:
    """Return symmetric parameters; channels that are never negative use only codes from 0 up."""
    two_sided = symmetric(span, type_)
    least, greatest = code_limits(type_)
    positive = span.low >= 0
    above = usable(np.maximum(span.high, 0.0) / (greatest - least))
    return Params(type_, np.where(positive, above, two_sided.scale), np.where(positive, least, 0).astype(np.int64))


_RULES = {RangeRule.NUDGE: asymmetric, RangeRule.EXTEND: extend, RangeRule.UNSIGNED: unsigned}


#: The loss of each row under its part of a range [C]: float64[C]. A single row of points takes any number of ranges.
Loss = Callable[[Range], Reals]


def loss(points: Points, quantizer: Quantizer, objective: Objective) -> Loss:
    """Return the objective as a function of the range alone. KL and JENSEN_SHANNON gather the points in bins first."""
    if objective in _OF_HISTOGRAMS:
        bins = points.binned()
        divergence = _OF_HISTOGRAMS[objective]
        return lambda span: divergence(bins, quantizer, span)
    error = distance(objective)
    return lambda span: error(points, quantizer.nearest(points.values, span))


def distance(objective: Objective) -> Callable[[Points, Reals], Reals]:
    """Return the function that measures the distance of other values [C, N] from points, row by row.

    Raises:
        OptionError: The objective compares histograms, not values.
    """
    if objective not in _OF_VALUES:
        raise OptionError("compares histograms; an operator's output is compared value by value", name=objective.value)
    return _OF_VALUES[objective]


def _mean_square(points: Points, near: Reals) -> Reals:
    return _mean(points, np.square(points.values - near))


def _weighted_mean_square(points: Points, near: Reals) -> Reals:
    magnitude = np.abs(points.values)
    return _ratio(_mean(points, magnitude * np.square(points.values - near)), _mean(points, magnitude))


def _mean_distance(points: Points, near: Reals) -> Reals:
    return _mean(points, np.abs(points.values - near))


def _angle(points: Points, near: Reals) -> Reals:
    product = _mean(points, points.values * near)
    lengths = np.sqrt(_mean(points, np.square(points.values)) * _mean(points, np.square(near)))
    return np.where(lengths > 0, 1 - _ratio(product, lengths), 1.0)


def _mean(points: Points, terms: Reals) -> Reals:
    """Return the weighted mean of each row."""
    rows, count = terms.shape
    if points.counts.size == 1:
        return terms.mean(axis=1) if count else np.zeros(rows)
    return _ratio((points.counts * terms).sum(axis=1), points.counts.sum(axis=1))


def _relative_entropy(bins: Points, quantizer: Quantizer, span: Range) -> Reals:
    """Return KL(clipped || quantized).

    Values outside the range count in its outermost bins, as clipping puts them there. The quantized form is computed
    from the values inside alone, so that clipping many values is expensive.
    """
    code = _codes(bins, quantizer, span)
    low, high = quantizer.codes
    inside = (bins.counts > 0) & (code >= low) & (code <= high)
    within = np.where(inside, bins.counts, 0.0)
    clipped = within.copy()
    rows = np.arange(len(within))
    first = inside.argmax(axis=1)
    last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
    clipped[rows, first] += np.where(code < low, bins.counts, 0.0).sum(axis=1)
    clipped[rows, last] += np.where(code > high, bins.counts, 0.0).sum(axis=1)
    divergence = _divergence(_shares(clipped), _shares(_spread(within, code, quantizer)))
    return np.where(inside.any(axis=1), divergence, np.inf)


def _jensen_shannon(bins: Points, quantizer: Quantizer, span: Range) -> Reals:
    low, high = quantizer.codes
    code = _codes(bins, quantizer, span)
    saturated = np.clip(code, low, high)
    inside = (bins.counts > 0) & (code == saturated)
    masses = _by_code(bins.counts, saturated, quantizer)
    homes = _by_code(inside.astype(np.float64), saturated, quantizer)
    whole = _shares(bins.counts)
    spread = _shares(np.where(inside, _at(_ratio(masses, homes), saturated, quantizer), 0.0))
    middle = (whole + spread) / 2
    return (_divergence(whole, middle) + _divergence(spread, middle)) / 2


def _codes(bins: Points, quantizer: Quantizer, span: Range) -> Reals:
    """Return the code nearest to each bin, without saturation."""
    params = quantizer.params(span)
    return np.rint(bins.values / params.scale.astype(np.float64)[:, None]) + params.zero_point[:, None]


def _spread(within: Reals, code: Reals, quantizer: Quantizer) -> Reals:
    """Return the mass of each code, spread evenly over the occupied bins with this code."""
    code = np.clip(code, *quantizer.codes)
    masses, homes = _by_code(within, code, quantizer), _by_code((within > 0).astype(np.float64), code, quantizer)
    return np.where(within > 0, _at(_ratio(masses, homes), code, quantizer), 0.0)


def _by_code(weights: Reals, code: Reals, quantizer: Quantizer) -> Reals:
    """Return the sums [C, codes] of the weights [C, N] by code."""
    low, high = quantizer.codes
    rows, count = len(code), high - low + 1
    index = (code - low).astype(np.int64) + count * np.arange(rows)[:, None]
    return (
        np.bincount(index.ravel(), np.broadcast_to(weights, code.shape).ravel(), rows * count)
        .reshape(rows, count)
        .astype(np.float64)
    )


def _at(table: Reals, code: Reals, quantizer: Quantizer) -> Reals:
    """Return the entries of a table [C, codes] for the codes [C, N]."""
    return np.take_along_axis(table, (code - quantizer.codes[0]).astype(np.int64), axis=1)


def _divergence(p: Reals, q: Reals) -> Reals:
    """Return sum p log(p / q) of each row, without the terms with p = 0."""
    p, q = np.broadcast_arrays(p, q)
    terms = np.zeros(p.shape)
    with np.errstate(divide="ignore"):
        np.log(p / np.where(q > 0, q, 1.0), out=terms, where=(p > 0) & (q > 0))
    total: Reals = (p * terms).sum(axis=1)
    return np.where(((p > 0) & (q == 0)).any(axis=1), np.inf, total)


def _shares(counts: Reals) -> Reals:
    return _ratio(counts, counts.sum(axis=1, keepdims=True))


def _ratio(a: Reals, b: Reals) -> Reals:
    """Return a / b, or 0 if b is 0."""
    quotient: Reals = np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)
    return quotient


_OF_VALUES: dict[Objective, Callable[[Points, Reals], Reals]] = {
    Objective.L2: _mean_square,
    Objective.WEIGHTED_L2: _weighted_mean_square,
    Objective.EARTH_MOVER: _mean_distance,
    Objective.COSINE: _angle,
}
_OF_HISTOGRAMS: dict[Objective, Callable[[Points, Quantizer, Range], Reals]] = {
    Objective.KL: _relative_entropy,
    Objective.JENSEN_SHANNON: _jensen_shannon,
}
