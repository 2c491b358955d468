"""Observing models: what observers see, resuming, refusals, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from support.suites import ROOT
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.errors import CalibrationError
from tflq.model.ir import Model, TensorType, view
from tflq.quantization.params import extent
from tflq.quantization.ranges.choice import Walker
from tflq.quantization.ranges.observers import ChannelEnds, FirstSamples, Histogram, MinMax, Reservoir
from tflq.quantization.ranges.watching import Observations, observe, outlying

Array = np.ndarray[Any, Any]


def digits() -> Model:
    return load(ROOT / "golden/models/digits_mobilenet_float.tflite")


def samples(model: Model, count: int) -> Iterator[dict[int, Array]]:
    random = np.random.default_rng(7)
    graph = view(model)
    for _ in range(count):
        yield {t: random.normal(size=graph.tensors[t].shape).astype(np.float32) for t in graph.inputs}


def floats(model: Model) -> list[int]:
    graph = view(model)
    made = [t for operator in graph.ops for t in operator.outputs]
    return [t for t in (*graph.inputs, *made) if graph.tensors[t].type == TensorType.FLOAT32]


def mixed_rows() -> Model:
    """A graph whose samples cannot run together: a MEAN over axis 0."""
    graph = FloatGraph(0)
    mean = graph.op("MEAN", [graph.given(1, 4), graph.constant([0], "int32")], {"keep_dims": False}, version=1)[0]
    return graph.model([graph.unary("RELU", mean)])


@pytest.mark.parametrize("made", [digits, mixed_rows])
def test_observers_see_every_value_of_every_sample_once(made: Any) -> None:
    model = made()
    tensors = floats(model)
    seen = observe(model, samples(model, 11), Observations.begin(tensors, MinMax(), Histogram(), FirstSamples(1 << 20)))
    plan = make_plan(model, by_name("litert-ref"))
    traces = [run(plan, sample, keep_all=True).values for sample in samples(model, 11)]
    assert seen.count == 11
    for tensor in tensors:
        values = np.stack([trace[tensor] for trace in traces])
        low_high, histogram, kept = seen.of[tensor]
        assert (low_high.range.low, low_high.range.high) == (extent(values).low, extent(values).high)
        assert isinstance(histogram, Histogram)
        assert histogram.counts.sum() == values.size
        assert isinstance(kept, FirstSamples)
        assert np.array_equal(kept.samples.ravel(), values.ravel())
    for tensor, peaks in seen.peaks.items():
        assert peaks == tuple(float(np.abs(trace[tensor]).max()) for trace in traces)


def test_infinite_activations_are_named_by_tensor_and_sample() -> None:
    graph = FloatGraph(0)
    model = graph.model([graph.unary("EXP", graph.given(1, 3))])
    given = [{0: np.full((1, 3), 1000.0 if k == 40 else 1.0, np.float32)} for k in range(50)]
    with pytest.raises(CalibrationError, match=r"sample 40, t1: the float model computes inf"):
        observe(model, given, Observations.begin([1], MinMax()))


def test_an_input_that_is_always_zero_is_refused_and_a_constant_activation_is_not() -> None:
    graph = FloatGraph(0)
    model = graph.model([graph.unary("RELU", graph.given(1, 3))])
    begun = Observations.begin([0, 1], MinMax())
    with pytest.raises(CalibrationError, match="t0: is 0 in all samples"):
        observe(model, [{0: np.zeros((1, 3), np.float32)}] * 3, begun)
    seen = observe(model, [{0: np.full((1, 3), -1, np.float32)}] * 3, begun)
    assert seen.of[1][0].range.high.tolist() == [0.0]


def test_no_samples_are_refused() -> None:
    with pytest.raises(CalibrationError, match="no samples"):
        observe(digits(), [], Observations.begin([0], MinMax()))


def test_progress_counts_samples() -> None:
    told: list[tuple[str, int, int]] = []
    model = digits()
    observe(model, samples(model, 40), Observations.begin([0], MinMax()), lambda *facts: told.append(facts))
    assert told[-1] == ("observing sample", 40, 0)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_outlying_samples_are_found_by_their_peaks() -> None:
    assert outlying([1.0, 1.2, 0.9, 30.0, 1.1, 9.0]) == (3,)
    assert outlying([]) == ()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_samples() -> None:
    model = digits()
    begun = Observations.begin(floats(model), MinMax(), Histogram(64), Reservoir(50), ChannelEnds(), FirstSamples(1000))
    observe(model, samples(model, 64), begun)  # compiles, fills caches
    peaks = []
    for count in (64, 640):
        tracemalloc.start()
        observe(model, samples(model, count), begun)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0] + 64 * 640


def test_a_walk_makes_what_a_run_makes_and_a_tap_replaces_what_is_read() -> None:
    model = digits()
    (sample,) = samples(model, 1)
    trace = run(make_plan(model, by_name("litert-ref")), sample, keep_all=True).values
    seen: dict[int, Array] = {}
    Walker(model, "litert-ref").walk(sample, lambda t, x: seen.setdefault(t, x), view(model).outputs)
    assert all(np.array_equal(seen[t], trace[t]) for t in seen)
    assert set(floats(model)) <= set(seen)

    first = view(model).op(0).outputs[0]
    changed: dict[int, Array] = {}

    def tap(tensor: int, value: Array) -> Array:
        changed[tensor] = value
        return np.zeros_like(value) if tensor == first else value

    second = view(model).op(1).outputs[0]
    Walker(model, "litert-ref").walk(sample, tap, [second])
    assert not np.array_equal(changed[second], trace[second])
    assert set(changed) == {*view(model).inputs, first, second}  # nothing beyond what was asked for is run
