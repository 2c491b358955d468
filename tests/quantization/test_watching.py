"""Observing quarter by quarter, once for all who ask, gives what observing everything gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.errors import CalibrationError
from tflq.quantization.frontier import Sample, SharedValues
from tflq.quantization.quarters import KeptSamples, Quarter, parted, parts_of
from tflq.quantization.ranges import watching
from tflq.quantization.ranges.observers import ChannelEnds, Histogram, MinMax
from tflq.quantization.ranges.watching import Observations, Watching, observe
from tflq.quantization.recipe import Mode
from tflq.quantization.refine.moments import RowSums
from tflq.quantization.refine.sequence import refinable
from tflq.quantization.scheme.float_graph import FloatModel, prepare
from tflq.quantization.scheme.scheme import modes_of, scheme

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
FLOATS = prepare(tflq.load(GOLDEN / "digits_mobilenet_float.tflite"))


def samples(count: int, floats: FloatModel = FLOATS) -> list[Sample]:
    random, (tensor,) = np.random.default_rng(3), floats.graph.inputs
    return [{tensor: random.normal(size=floats.graph.tensors[tensor].shape).astype(np.float32)} for _ in range(count)]


def made(floats: FloatModel) -> list[int]:
    return [o.outputs[0] for o in floats.graph.ops]


@pytest.mark.parametrize("count", [5, 22])
def test_quarters_together_hold_what_the_whole_holds(count: int) -> None:
    begun = Observations.begin(made(FLOATS), MinMax(), Histogram(64), ChannelEnds())
    whole = observe(FLOATS.model, samples(count), begun)
    seen = Watching(SharedValues()).observe(FLOATS, samples(count), begun)
    assert seen.count == count
    for tensor, (ends, histogram, channels) in seen.of.items():
        other: Any = whole.of[tensor]
        assert ends == other[0]
        np.testing.assert_array_equal(histogram.counts, other[1].counts)  # type: ignore[attr-defined]
        np.testing.assert_allclose(histogram.sums, other[1].sums, rtol=1e-9, atol=1e-9)  # type: ignore[attr-defined]
        np.testing.assert_array_equal(channels.range.high, other[2].range.high)


def test_a_model_is_run_once_a_quarter_for_all_that_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []

    def counted(*arguments: Any) -> Observations:
        runs.append(len(arguments[1]))
        return observe(*arguments)

    monkeypatch.setattr(watching, "observe", counted)
    given, tensors = samples(16), made(FLOATS)
    watcher = Watching(SharedValues())
    watcher.expect(FLOATS, Observations.begin(tensors, MinMax()))
    watcher.expect(FLOATS, Observations.begin(tensors, Histogram()))
    watcher.observe(FLOATS, parted(given, 0)[0], Observations.begin(tensors, MinMax()))
    watcher.observe(FLOATS, parted(given, 0)[0], Observations.begin(tensors[:2], Histogram()))
    assert runs == [4, 4, 4]
    watcher.observe(FLOATS, parted(given, 1)[0], Observations.begin(tensors, MinMax()))
    assert runs == [4, 4, 4, 4]
    watcher.observe(FLOATS, given, Observations.begin(tensors, Histogram()))
    assert runs == [4, 4, 4, 4]


def test_a_bad_sample_has_its_number_among_all() -> None:
    given = samples(12)
    (tensor,) = FLOATS.graph.inputs
    given[6] = {tensor: np.full_like(given[6][tensor], 3e38)}
    with np.errstate(all="ignore"), pytest.raises(CalibrationError) as error:
        Watching(SharedValues()).observe(FLOATS, given, Observations.begin(made(FLOATS), MinMax()))
    assert error.value.sample == 6


def test_row_sums_are_those_of_the_rows() -> None:
    products = refinable(scheme(FLOATS, modes_of(FLOATS, Mode.INT8, {})[0]))
    product = products[1]
    seen = observe(FLOATS.model, samples(6), Observations.begin([product.multiplied.data], RowSums(product)))
    values = observe(FLOATS.model, samples(6)[2:3], Observations.begin([product.multiplied.data], RowSums(product)))
    rows: Any = seen.of[product.multiplied.data][0]
    alone: Any = values.of[product.multiplied.data][0]
    np.testing.assert_allclose(rows.total([2]), alone.sums[0], rtol=1e-6)
    np.testing.assert_allclose(rows.total(range(6)), rows.sums.sum(axis=0))


def test_kept_samples_are_the_same_from_memory_and_from_files() -> None:
    given = samples(7)
    (tensor,) = FLOATS.graph.inputs
    kept = KeptSamples(iter(given), memory=3 * given[0][tensor].nbytes)
    assert len(kept) == 7
    for k in range(7):
        np.testing.assert_array_equal(kept[k][tensor], given[k][tensor])
    assert [part.numbers for part in parts_of(kept)] == [list(range(7))]  # too few to be parted
    np.testing.assert_array_equal(kept[-1][tensor], given[6][tensor])
    assert len(Quarter(kept, (0, 1))) == len(Quarter(kept, (0,))) + len(Quarter(kept, (1,)))
