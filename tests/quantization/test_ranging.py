"""Ranges of whole schemes: targets and orders against min-max on models that were made for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from tflq.model.flatbuf import write
from tflq.model.ir import Model, view
from tflq.quantization.build.build import Task, build
from tflq.quantization.frontier import Runner
from tflq.quantization.recipe import (
    Methods,
    Objective,
    RangeTarget,
    Ranging,
    Recipe,
    Search,
    Solving,
    Watch,
    WatchOrder,
)
from tflq.quantization.scheme.float_graph import prepare

Array = np.ndarray[Any, Any]
Samples = list[dict[int, Array]]
GOLDEN = Solving.GOLDEN_SECTION


def results(model: Model, samples: Iterable[dict[int, Array]]) -> Array:
    """The model's first output for all samples, as reals."""
    tensor = view(model).outputs[0]
    made = np.concatenate([values[tensor] for values in Runner(model).run(samples)])
    q = view(model).tensors[tensor].quantization
    return made if q is None or not len(q.scale) else (made.astype(np.float64) - q.zero_point[0]) * float(q.scale[0])


def codes(model: Model, samples: Samples) -> Samples:
    """Float samples of the float model as the integer model takes them."""
    made = []
    for sample in samples:
        given = {}
        for tensor, value in zip(view(model).inputs, sample.values(), strict=True):
            q = view(model).tensors[tensor].quantization
            assert q is not None
            given[tensor] = np.clip(np.rint(value / q.scale[0]) + q.zero_point[0], -128, 127).astype(np.int8)
        made.append(given)
    return made


def quantized(model: Model, samples: Samples, ranging: Ranging) -> Model:
    """The model in int8 by these ranges and nothing else."""
    return build(Task(prepare(model), samples, Recipe(), Methods(ranging=ranging))).integer.model


def error(model: Model, samples: Samples, ranging: Ranging) -> float:
    """Mean square difference between the float model's output and the integer model's."""
    integer = quantized(model, samples, ranging)
    return float(np.mean(np.square(results(model, samples) - results(integer, codes(integer, samples)))))


def dense(graph: FloatGraph, x: int, weights: Array) -> int:
    """FULLY_CONNECTED without activation; `weights` are [outputs, inputs]."""
    return graph.op(
        "FULLY_CONNECTED",
        [x, graph.constant(weights), graph.constant(np.zeros(len(weights)))],
        {"fused_activation_function": 0, "weights_format": 0},
    )[0]


def normal(shape: tuple[int, ...], seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def of_input(rows: Array) -> Samples:
    return [{0: row[None].astype(np.float32)} for row in rows]


def idle_inputs() -> tuple[Model, Samples]:
    """Half of the inputs hardly ever move, and the weights that read them are the greatest."""
    graph = FloatGraph(0)
    weights = normal((6, 16), 1)
    weights[:, 8:] *= 60
    made = dense(graph, graph.given(1, 16), weights)
    rows = normal((40, 16), 2)
    rows[:, 8:] *= 1e-5
    return graph.model([made]), of_input(rows)


def idle_weights() -> tuple[Model, Samples]:
    """Some inputs are far greater than the others, and nothing reads them."""
    graph = FloatGraph(0)
    weights = normal((6, 16), 1)
    weights[:, 12:] = 0
    made = dense(graph, graph.given(1, 16), weights)
    rows = normal((40, 16), 2)
    rows[:, 12:] *= 50
    return graph.model([made]), of_input(rows)


def both_idle() -> tuple[Model, Samples]:
    graph = FloatGraph(0)
    weights = normal((6, 24), 1)
    weights[:, 8:16] *= 60
    weights[:, 16:] = 0
    made = dense(graph, graph.given(1, 24), weights)
    rows = normal((40, 24), 2)
    rows[:, 8:16] *= 1e-5
    rows[:, 16:] *= 50
    return graph.model([made]), of_input(rows)


OUTPUT = Search(Objective.L2, GOLDEN, RangeTarget.OUTPUT)


@pytest.mark.parametrize(
    ("made", "ranging"),
    [
        (idle_inputs, Ranging(weights=OUTPUT)),
        (idle_weights, Ranging(activations=OUTPUT)),
        (both_idle, Ranging(weights=OUTPUT, activations=OUTPUT)),
        (idle_inputs, Ranging(weights=Search(Objective.COSINE, GOLDEN, RangeTarget.OUTPUT))),
        (idle_weights, Ranging(activations=Search(Objective.EARTH_MOVER, Solving.GRID, RangeTarget.OUTPUT))),
    ],
)
def test_what_an_output_loses_wins_where_values_mislead(made: Any, ranging: Ranging) -> None:
    model, samples = made()
    ours = error(model, samples, ranging)
    assert ours < 0.1 * error(model, samples, Ranging())
    on_values = Ranging(weights=ranging.weights and Search(), activations=ranging.activations and Search())
    assert ours < 0.2 * error(model, samples, on_values)


def shifted_by_weights() -> tuple[Model, Samples]:
    """Logits that rounded weights shift, all alike: the softmax would not mind, but a range for the float logits cuts
    the greatest off.
    """
    graph = FloatGraph(0)
    weights = np.full((8, 120), 0.6)  # in steps of a scale of 1: each rounds to 1
    weights[:, :8] = 127 * np.eye(8)
    made = graph.unary("SOFTMAX", dense(graph, graph.given(1, 120), weights), {"beta": 0.05})
    random, rows = np.random.default_rng(3), np.ones((60, 120))
    rows[:, :8] = random.uniform(0, 1, (60, 8))
    return graph.model([made]), of_input(rows)


def shifted_by_activations() -> tuple[Model, Samples]:
    """The same, but hidden values are what rounding shifts."""
    graph = FloatGraph(0)
    spread = np.eye(120)
    spread[8:, 8:] *= 0.6
    hidden = graph.unary("RELU", dense(graph, graph.given(1, 120), spread))
    weights = np.ones((8, 120))
    weights[:, :8] = np.eye(8)
    made = graph.unary("SOFTMAX", dense(graph, hidden, weights), {"beta": 0.1})
    random, rows = np.random.default_rng(3), np.ones((60, 120))
    rows[:, :8] = random.uniform(0, 255, (60, 8))
    rows[0, :8] = 255
    return graph.model([made]), of_input(rows)


@pytest.mark.parametrize("order", [WatchOrder.WEIGHTS_FIRST, WatchOrder.LAYER_BY_LAYER, WatchOrder.ONLINE])
def test_quantized_weights_shift_what_activations_reach(order: WatchOrder) -> None:
    model, samples = shifted_by_weights()
    assert error(model, samples, Ranging(order=order)) < 0.2 * error(model, samples, Ranging())


@pytest.mark.parametrize("order", [WatchOrder.LAYER_BY_LAYER, WatchOrder.ONLINE])
def test_a_quantized_prefix_shifts_what_activations_reach(order: WatchOrder) -> None:
    model, samples = shifted_by_activations()
    ours = error(model, samples, Ranging(order=order))
    assert ours < 0.2 * error(model, samples, Ranging())
    assert ours < 0.2 * error(model, samples, Ranging(order=WatchOrder.WEIGHTS_FIRST))


def test_two_passes_win_where_one_value_leaves_the_bulk_a_single_bin() -> None:
    graph = FloatGraph(0)
    made = dense(graph, graph.given(1, 16), normal((6, 16), 1))
    rows = normal((2000, 16), 2)
    model, usual = graph.model([made]), of_input(rows[1:])
    rows[0, 3] = 1e5
    search = Search(Objective.EARTH_MOVER, GOLDEN)
    found = {}
    for passes in (False, True):
        ranging = Ranging(Watch.MOVING_AVERAGE, activations=search, two_passes=passes)
        integer = quantized(model, of_input(rows), ranging)
        found[passes] = np.mean(np.square(results(model, usual) - results(integer, codes(integer, usual))))
    integer = quantized(model, of_input(rows), Ranging())
    extremes = np.mean(np.square(results(model, usual) - results(integer, codes(integer, usual))))
    assert found[True] < 0.1 * extremes
    assert found[True] < 0.5 * found[False]


def scored(*, other_reader: bool) -> tuple[Model, Samples]:
    """Scores near each other above one that lies far below, with a SOFTMAX."""
    graph = FloatGraph(0)
    scores = dense(graph, graph.given(1, 8), np.diag([1.0] * 7 + [60.0]))
    made = [graph.unary("SOFTMAX", scores, {"beta": 1.0})]
    rows = normal((64, 8), 5)
    rows[:, 7] = -2
    return graph.model([*made, scores] if other_reader else made), of_input(rows)


def test_scores_get_their_steps_where_the_distribution_needs_them() -> None:
    model, samples = scored(other_reader=False)
    by_values, by_scores = (
        Ranging(Watch.HISTOGRAM, activations=Search(target=t)) for t in (RangeTarget.VALUES, RangeTarget.SCORES)
    )
    assert error(model, samples, by_scores) < 0.2 * error(model, samples, by_values)


def test_scores_that_others_read_are_no_scores_alone() -> None:
    model, samples = scored(other_reader=True)
    by_values, by_scores = (
        quantized(model, samples, Ranging(Watch.HISTOGRAM, activations=Search(target=target)))
        for target in (RangeTarget.VALUES, RangeTarget.SCORES)
    )
    assert write(by_scores) == write(by_values)
