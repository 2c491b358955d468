"""Range rules and searches: each rule against its definition, each method against min-max on data made for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.losses import divergences, near, square_error
from tflq.errors import OptionError
from tflq.model.ir import TensorType
from tflq.quantization.params import Range, extent
from tflq.quantization.ranges.objectives import Points, Quantizer, distance, from_rows, rows_of
from tflq.quantization.ranges.observers import Histogram, Reservoir
from tflq.quantization.ranges.search import SOLVERS, Patience, Problem, best_of, narrow, search_range
from tflq.quantization.recipe import Objective, RangeRule, Solving

Array = np.ndarray[Any, Any]
INT8 = Quantizer(RangeRule.NUDGE, TensorType.INT8)
WEIGHTS = Quantizer(RangeRule.SYMMETRIC, TensorType.INT8)
END = st.floats(2.0**-20, 2.0**20)


def heavy(count: int = 16_000, seed: int = 0) -> Array:
    """A bulk within about 8 and a handful of values far away on both sides."""
    x = np.random.default_rng(seed).laplace(size=count)
    x[:4] = 60, 45, -30, -25
    return x.astype(np.float32)


def stray(count: int = 300_000) -> Array:
    """A bulk within about 5 and two values so rare that squares allow to cut them off."""
    x = np.random.default_rng(4).normal(size=count)
    x[:2] = 10, -10
    return x.astype(np.float32)


# Rules


@given(END, END)
def test_extending_covers_the_range_and_gives_zero_a_code(below: float, above: float) -> None:
    params = Quantizer(RangeRule.EXTEND, TensorType.UINT8).params(Range.of(-below, above))
    scale, zero = float(params.scale[0]), int(params.zero_point[0])
    assert 0 <= zero <= 255
    step = (below + above) / 255
    low, high = -zero * scale, (255 - zero) * scale
    slack = 2.0**-13 * step + 2.0**-22 * (below + above)
    assert low <= -below + slack
    assert high >= above - slack
    moved = (-below - low, high - above)
    assert min(moved) <= slack  # one end stays
    fraction = 255 * below / (below + above) % 1
    other = (1 - fraction) * (below + above) / 255  # about what moving the low end costs at least
    assert max(moved) <= max(2 * step, other) * 256


def test_extending_wins_where_values_sit_at_the_ends() -> None:
    """The end that stays is hit exactly; nudging the zero point moves both."""
    random, lost = np.random.default_rng(0), {RangeRule.NUDGE: 0.0, RangeRule.EXTEND: 0.0}
    for _ in range(300):
        wanted = Range.of(-random.uniform(0.1, 1), random.uniform(0.1, 1))
        ends = np.array([[wanted.low[0], wanted.high[0]]])
        for rule in lost:
            quantizer = Quantizer(rule, TensorType.INT8)
            lost[rule] += float(np.square(quantizer.nearest(ends, wanted) - ends).sum())
    assert lost[RangeRule.EXTEND] < 0.7 * lost[RangeRule.NUDGE]


def test_symmetric_rules_win_where_calibration_saw_one_side_only() -> None:
    x = np.random.default_rng(1).normal(size=5000)
    seen = extent(x[x > -0.5])
    for rule in (RangeRule.SYMMETRIC, RangeRule.UNSIGNED):
        ours = Quantizer(rule, TensorType.INT8).nearest(x[None], seen)
        assert np.mean(np.square(ours - x)) < 0.1 * square_error(x, seen)


def test_unsigned_gives_what_is_never_negative_all_codes() -> None:
    params = Quantizer(RangeRule.UNSIGNED, TensorType.INT8).params(Range(np.array([0.0, -1.0]), np.array([2.55, 2.54])))
    np.testing.assert_allclose(params.scale, [0.01, 0.02], rtol=1e-6)
    assert params.zero_point.tolist() == [-128, 0]


@pytest.mark.parametrize("rule", RangeRule)
@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.INT16])
def test_always_zero_is_kept(rule: RangeRule, kind: TensorType) -> None:
    quantizer = Quantizer(rule, kind)
    assert np.array_equal(quantizer.nearest(np.zeros((2, 3)), Range(np.zeros(2), np.zeros(2))), np.zeros((2, 3)))


@pytest.mark.parametrize("rule", [RangeRule.SYMMETRIC, RangeRule.UNSIGNED])
def test_unsigned_codes_cannot_be_symmetric(rule: RangeRule) -> None:
    with pytest.raises(OptionError, match="signed codes"):
        Quantizer(rule, TensorType.UINT8)


def test_clipped_weights_never_take_the_least_code() -> None:
    clipped = WEIGHTS.nearest(np.array([[-9.0, 9.0]]), Range.of(-1.0, 1.0))
    np.testing.assert_allclose(clipped, [[-1.0, 1.0]], rtol=1e-6)


# Objectives


def judged(objective: Objective, x: Array, range_: Range) -> float:
    """The objective, from its definition."""
    y = near(x, range_)
    size = np.abs(x.astype(np.float64))
    match objective:
        case Objective.L2:
            return float(np.mean((x - y) ** 2))
        case Objective.WEIGHTED_L2:
            return float((size * (x - y) ** 2).sum() / size.sum())
        case Objective.EARTH_MOVER:
            return float(np.mean(np.abs(np.sort(x) - np.sort(y))))
        case Objective.COSINE:
            return float(1 - (x @ y) / np.linalg.norm(x.astype(np.float64)) / np.linalg.norm(y))
        case Objective.KL:
            return divergences(x, range_)[0]
        case Objective.JENSEN_SHANNON:
            return divergences(x, range_)[1]


@pytest.mark.parametrize("objective", Objective)
def test_an_objective_is_what_its_definition_says(objective: Objective) -> None:
    from tflq.quantization.ranges.objectives import loss

    x = heavy()
    cost = loss(Points.of_values(x), INT8, objective)
    for range_ in (Range.of(-30, 60), Range.of(-8, 9), Range.of(-2, 2), Range.of(0.0, 3.0)):
        assert cost(range_)[0] == pytest.approx(judged(objective, x, range_), rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["values", "histogram", "reservoir"])
@pytest.mark.parametrize("objective", Objective)
def test_each_objective_wins_against_min_max(objective: Objective, data: str) -> None:
    x = stray() if objective in (Objective.L2, Objective.COSINE) else heavy()
    if objective is Objective.WEIGHTED_L2:  # what is large counts: only a single value among tiny ones is cut off
        x = np.append(np.full(3000, 1e-3), [1.0, -0.5, 0.26]).astype(np.float32)
    held = Histogram(1 << 16).update(x)
    points = {
        "values": lambda: Points.of_values(x),
        "histogram": lambda: Points.of_histogram(held),
        "reservoir": lambda: Points.of_values(Reservoir().update(x).values),
    }[data]()
    found = search_range(points, INT8, objective, SOLVERS[Solving.GRID], extent(x))
    assert judged(objective, x, found) < 0.9 * judged(objective, x, extent(x))


def test_divergences_see_no_difference_where_every_bin_has_its_code() -> None:
    x = np.tile(np.arange(-128, 128), 3).astype(np.float32)
    for objective in (Objective.KL, Objective.JENSEN_SHANNON):
        from tflq.quantization.ranges.objectives import loss

        assert loss(Points.of_values(x), INT8, objective)(Range.of(-128, 127))[0] == pytest.approx(0, abs=1e-12)


def test_histograms_are_no_objective_of_outputs() -> None:
    with pytest.raises(OptionError, match="value by value"):
        distance(Objective.KL)


# Solvers


@pytest.mark.parametrize("solving", Solving)
def test_each_solver_wins_against_min_max(solving: Solving) -> None:
    x = stray()
    found = search_range(Points.of_histogram(Histogram().update(x)), INT8, Objective.L2, SOLVERS[solving])
    assert square_error(x, found) < 0.75 * square_error(x, extent(x))


@pytest.mark.parametrize("solving", Solving)
def test_rows_of_weights_are_solved_apart_and_win_against_min_max(solving: Solving) -> None:
    weights = np.random.default_rng(5).normal(size=(4, 10, 20_000)) * np.array([1, 1e-3, 0, 1e3]).reshape(4, 1, 1)
    weights[:, 3, 3] *= 12 / np.maximum(np.abs(weights[:, 3, 3]), 1e-30) * np.array([1, 1e-3, 0, 1e3])
    points = Points.of_values(weights, 0)
    found = search_range(points, WEIGHTS, Objective.L2, SOLVERS[solving])

    def lost(range_: Range) -> Array:
        return np.mean(np.square(WEIGHTS.nearest(points.values, range_) - points.values), axis=1)

    assert np.all(lost(found)[[0, 1, 3]] < 0.8 * lost(points.range)[[0, 1, 3]])
    assert lost(found)[2] == 0
    alone = search_range(Points.of_values(weights[3:], 0), WEIGHTS, Objective.L2, SOLVERS[solving])
    np.testing.assert_allclose([found.low[3], found.high[3]], [alone.low[0], alone.high[0]], rtol=1e-9)


@pytest.mark.parametrize("solving", [Solving.GRID, Solving.ALTERNATING_ENDS])
def test_ends_that_move_alone_win_where_one_side_is_wild(solving: Solving) -> None:
    x = heavy()
    x[x < -8] = -8
    points = Points.of_values(x)
    together = search_range(points, INT8, Objective.EARTH_MOVER, SOLVERS[Solving.GOLDEN_SECTION])
    apart = search_range(points, INT8, Objective.EARTH_MOVER, SOLVERS[solving])
    assert judged(Objective.EARTH_MOVER, x, apart) < 0.8 * judged(Objective.EARTH_MOVER, x, together)


def test_octav_is_the_fixed_point_of_the_published_iteration() -> None:
    x = np.random.default_rng(6).laplace(size=100_000)
    found = float(search_range(Points.of_values(x), WEIGHTS, Objective.L2, SOLVERS[Solving.OCTAV]).high[0])
    size, noise = np.abs(x), 1 / (3 * 254**2)  # step^2 / 12 in units of s^2, the step being 2 s / 254
    again = size[size > found].sum() / (noise * (size <= found).sum() + (size > found).sum())
    assert found == pytest.approx(again, rel=1e-6)
    assert found < 0.95 * size.max()


def test_golden_section_finds_the_bottom_of_a_valley() -> None:
    bottom = np.array([0.1, 0.5, 0.93])
    found = narrow(lambda at: np.square(at - bottom), np.zeros(3), np.ones(3), 30)
    np.testing.assert_allclose(found, bottom, atol=1e-4)


def test_patience_ends_a_search_that_finds_nothing() -> None:
    seen: list[float] = []

    def step(current: Range) -> Range:
        seen.append(float(current.high[0]))
        return Range.of(0.0, seen[-1] + 1)

    best = Patience(patience=3, rounds=50).improve(Range.of(0.0, 1.0), lambda r: np.abs(r.high - 4.0), step)
    assert best.high[0] == 4.0
    assert seen == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_the_best_is_taken_row_by_row() -> None:
    candidates = [Range(np.zeros(2), np.array([a, b])) for a, b in ((1.0, 5.0), (2.0, 4.0), (3.0, 9.0))]
    found, lost = best_of(lambda r: np.abs(r.high - np.array([3.0, 5.0])), candidates)
    assert found.high.tolist() == [3.0, 5.0]
    assert lost.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("solving", [Solving.OCTAV, Solving.ALTERNATING_CODES])
def test_solvers_that_look_at_values_refuse_outputs(solving: Solving) -> None:
    problem = Problem(lambda r: r.high, Range.of(-1.0, 1.0), INT8)
    with pytest.raises(OptionError, match="operator's output"):
        SOLVERS[solving](problem)


@pytest.mark.parametrize("axis", [None, 0, 1, 3])
def test_rows_go_back_where_they_came_from(axis: int | None) -> None:
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    assert np.array_equal(from_rows(rows_of(x, axis), x.shape, axis), x)
