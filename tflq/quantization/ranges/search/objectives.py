"""The loss of a range: the distance of quantized values from the values, one number per row. Less is better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.errors import OptionError
from tflq.quantization.params import Range
from tflq.quantization.ranges.search.points import Points
from tflq.quantization.ranges.search.quantizer import Quantizer
from tflq.quantization.recipe.ranging import Objective

Reals = NDArray[np.float64]
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
