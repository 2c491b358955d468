"""Observers against NumPy over all data at once; and each against min-max on data that it was made for."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.losses import near, square_error
from tflq.errors import InputError
from tflq.model.ir import TensorType
from tflq.quantization.params import Range
from tflq.quantization.ranges.objectives import Points, Quantizer, loss
from tflq.quantization.ranges.observers import (
    ChannelEnds,
    FirstSamples,
    Histogram,
    MinMax,
    MovingAverage,
    Percentile,
    Reservoir,
)
from tflq.quantization.ranges.search import GridSearch, search_range
from tflq.quantization.recipe import Objective, RangeRule

Array = np.ndarray[Any, Any]
ALL = [
    MinMax(),
    MovingAverage(),
    MovingAverage(0.9),
    Percentile(0.01),
    Histogram(),
    Histogram(relative=True),
    Reservoir(500),
    ChannelEnds(),
    FirstSamples(),
]


def after(observer: Any, batches: list[Array]) -> Any:
    return reduce(lambda seen, batch: seen.update(batch), batches, observer)


def samples(count: int = 40, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    return (random.normal(0.3, 1, (count, 5, 4)) * random.uniform(0.1, 9, (count, 1, 1))).astype(np.float32)


def ends(range_: Range) -> tuple[float, float]:
    return float(range_.low[0]), float(range_.high[0])


def test_min_max_is_the_extremes() -> None:
    x = samples()
    assert ends(after(MinMax(), np.split(x, 8)).range) == (x.min(), x.max())


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_a_moving_average_weighs_samples_by_age(decay: float) -> None:
    x = samples()
    weights = decay ** np.arange(len(x))[::-1]
    low = np.average(x.reshape(len(x), -1).min(axis=1), weights=weights)
    high = np.average(x.reshape(len(x), -1).max(axis=1), weights=weights)
    assert ends(after(MovingAverage(decay), np.split(x, 4)).range) == pytest.approx((low, high), rel=1e-12)


def test_channels_have_numpys_extremes() -> None:
    x = samples()
    held = after(ChannelEnds(), np.array_split(x, 7))
    rows = x.reshape(-1, 4).astype(np.float64)
    assert np.array_equal(held.range.low, rows.min(axis=0))
    assert np.array_equal(held.range.high, rows.max(axis=0))


@pytest.mark.parametrize("observer", ALL, ids=lambda o: type(o).__name__)
def test_parts_merged_are_the_whole(observer: Any) -> None:
    x = samples()
    whole = after(observer, [x]).range
    merged = after(observer, [x[:25]]).merge(after(observer, [x[25:]])).range
    if not isinstance(observer, Reservoir):  # two choices from parts are no choice from the whole
        np.testing.assert_allclose(merged.low, whole.low, rtol=1e-12)
        np.testing.assert_allclose(merged.high, whole.high, rtol=1e-12)
    assert ends(observer.merge(after(observer, [x])).range) == ends(whole)
    assert ends(after(observer, [x]).merge(observer).range) == ends(whole)


@pytest.mark.parametrize("observer", ALL, ids=lambda o: type(o).__name__)
def test_nothing_seen_is_a_range_of_zero(observer: Any) -> None:
    assert ends(observer.range) == (0.0, 0.0)


REALS = st.floats(-(2.0**100), 2.0**100, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(REALS, min_size=1, max_size=9), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_a_histogram_hangs_on_the_values_alone(batches: list[list[float]], random: Any) -> None:
    arrays = [np.array(batch, np.float32) for batch in batches]
    held = after(Histogram(bins=64), arrays)
    values = np.concatenate(arrays).astype(np.float64)
    edges = np.ldexp(np.arange(held.first, held.first + 65, dtype=np.float64), held.exponent)
    index = np.searchsorted(edges, values, "right") - 1
    assert np.array_equal(held.counts, np.bincount(index, minlength=64)[:64])
    random.shuffle(arrays)
    other = after(Histogram(bins=64), [np.concatenate(arrays)])
    half = len(arrays) // 2
    merged = after(Histogram(bins=64), arrays[:half]).merge(after(Histogram(bins=64), arrays[half:]))
    for again in (other, merged):
        assert (again.exponent, again.first) == (held.exponent, held.first)
        assert np.array_equal(again.counts, held.counts)
    assert ends(held.range) == (values.min(), values.max())


def test_a_first_batch_lays_the_bins_and_the_rest_counts_at_their_ends() -> None:
    first, later = np.array([-1.0, 3.0], np.float32), np.array([100.0, 200.0, -50.0, 2.0], np.float32)
    held = after(Histogram(bins=64, margin=0.25), [first, later])
    low, high = np.ldexp(float(held.first), held.exponent), np.ldexp(float(held.first + 64), held.exponent)
    assert low <= -2
    assert 4 <= high < 16
    assert held.counts[0] == 1
    assert held.counts[-1] == 2
    assert held.counts.sum() == 6
    assert held.sums[-1] == 2 * high
    assert ends(held.range) == (low, high)
    with pytest.raises(InputError, match="same bins"):
        held.merge(Histogram.within(Range.of(0.0, 1.0), 64).update(first))


def test_quantiles_are_numpys_up_to_a_bin() -> None:
    x = np.random.default_rng(1).normal(size=50_000).astype(np.float32)
    held = after(Histogram(), np.split(x, 10))
    for share in (0.0, 0.001, 0.3, 0.5, 0.9999, 1.0):
        assert held.quantile(share) == pytest.approx(np.quantile(x, share), abs=2 * 2.0**held.exponent)


def test_a_reservoir_is_a_uniform_choice_that_can_be_made_again() -> None:
    x = np.arange(20_000, dtype=np.float32).reshape(20, 1000)
    held = after(Reservoir(2000), np.split(x, 10))
    assert held.values.size == 2000
    assert held.seen == 20_000
    assert len(np.unique(held.values)) == 2000
    assert np.array_equal(held.values, after(Reservoir(2000), np.split(x, 10)).values)
    per_quarter, _ = np.histogram(held.values, 4, (0, 20_000))
    assert np.all(np.abs(per_quarter - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75))


def test_whole_samples_are_kept_up_to_the_limit() -> None:
    x = samples(40)
    held = after(FirstSamples(limit=10 * x[0].nbytes + 1), np.split(x, 8))
    assert np.array_equal(held.samples, x[:10])
    assert np.array_equal(after(FirstSamples(limit=1), [x]).samples, x[:1])


@pytest.mark.parametrize("observer", [MovingAverage(), MovingAverage(0.95), Percentile(0.002)], ids=str)
def test_a_few_wild_samples_do_not_decide(observer: Any) -> None:
    """Ranges that leave out what two samples in a hundred reach lose less of the other samples than min-max does."""
    x = np.random.default_rng(2).normal(size=(200, 100)).astype(np.float32)
    x[[17, 130], 5] = 500, -400
    usual = np.delete(x, [17, 130], axis=0)
    batches = np.split(x, 20)
    ours = square_error(usual, after(observer, batches).range)
    assert ours < 0.05 * square_error(usual, after(MinMax(), batches).range)


def test_a_first_batch_keeps_later_outliers_from_deciding() -> None:
    x = np.random.default_rng(6).normal(size=(200, 100)).astype(np.float32)
    x[[70, 130], 5] = 5000, -4000
    usual, quantizer = np.delete(x, [70, 130], axis=0), Quantizer(RangeRule.NUDGE, TensorType.INT8)
    seen = {margin: after(Histogram(margin=margin), np.split(x, 20)) for margin in (None, 0.25)}
    lost = {
        margin: square_error(usual, search_range(Points.of_histogram(h), quantizer, Objective.L2, GridSearch()))
        for margin, h in seen.items()
    }
    assert lost[0.25] < 1e-3 * square_error(usual, after(MinMax(), [x]).range)
    assert lost[0.25] < 0.1 * lost[None]


def test_relative_counts_add_up_to_noise_to_signal_ratios() -> None:
    """A loud sample hides what a range loses of quiet ones, unless each counts by its own power."""
    x = np.random.default_rng(5).normal(size=(64, 500)).astype(np.float32)
    x[9] *= 1000

    def noise_to_signal(range_: Range) -> float:
        noise = np.mean(np.square(x - near(x, range_)), axis=1)
        return float(np.mean(noise / np.mean(np.square(x.astype(np.float64)), axis=1)))

    held = after(Histogram(1 << 16, relative=True), np.split(x, 8))
    points, quantizer = Points.of_histogram(held), Quantizer(RangeRule.NUDGE, TensorType.INT8)
    found = search_range(points, quantizer, Objective.L2, GridSearch())
    cost = loss(points, quantizer, Objective.L2)(found)[0]
    assert cost == pytest.approx(noise_to_signal(found), rel=0.02)  # in units of the mean weight, which is nearly 1
    assert noise_to_signal(found) < 0.05 * noise_to_signal(after(MinMax(), [x]).range)


def test_points_of_a_histogram_keep_the_mean_and_the_mass() -> None:
    x = np.random.default_rng(3).exponential(size=10_000).astype(np.float32)
    points = Points.of_histogram(Histogram(bins=128).update(x))
    assert points.counts.sum() == 10_000
    assert (points.values * points.counts).sum() / 10_000 == pytest.approx(x.astype(np.float64).mean(), rel=1e-12)
    assert np.all(np.diff(points.values) > 0)
