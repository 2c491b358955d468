"""Figures of a comparison, held against plain NumPy over LiteRT's own outputs."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tflq
from support import suites
from support.running import as_codes, litert, run_each
from tflq.errors import InputError
from tflq.face.report.verbs.compare_texts import agreement_texts
from tflq.model.ir import view
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.judge.detections import DecisionAgreement, Fidelity, kl, wilson

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "models"
FLOAT, INT8 = (GOLDEN / f"digits_mobilenet_{kind}.tflite" for kind in ("float", "int8"))


def digits() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    found = suites.digits()
    return found.images[:60].reshape(-1, 1, 8, 8, 1), found.labels[:60]


def litert_outputs(path: Path, images: NDArray[np.float32]) -> Iterator[NDArray[np.float64]]:
    interpreter = litert(path.read_bytes())
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, point = wanted["quantization"] if wanted["dtype"] == np.int8 else (1.0, 0)
    for scores in run_each(interpreter, [as_codes(image, given) for image in images]):
        yield (scores[0].astype(np.float64) - point) * scale


def test_figures_are_those_of_litert_outputs() -> None:
    images, labels = digits()
    model = tflq.load(FLOAT)
    (given,) = view(model).inputs
    found = compare_models(model, tflq.load(INT8), ({given: image} for image in images), labels)
    f, q = (np.array(list(litert_outputs(path, images))) for path in (FLOAT, INT8))
    assert found.samples == len(images)
    assert found.sqnr == pytest.approx(
        10 * np.log10(f.var(axis=0, ddof=1).sum() * len(f) / ((f - q) ** 2).sum()), abs=0.01
    )
    before, after = f.argmax(1), q.argmax(1)
    assert found.agreement is not None
    assert found.agreement.rate == np.mean(before == after)
    assert found.agreement.accuracies == (np.mean(before == labels), np.mean(after == labels))
    assert [flip.sample for flip in found.agreement.flips] == list(np.flatnonzero(before != after))
    assert found.tensors
    assert found.worst == min(found.tensors, key=lambda t: t.sqnr)


def test_a_model_is_the_same_as_itself() -> None:
    images, _ = digits()
    model = tflq.load(FLOAT)
    (given,) = view(model).inputs
    found = compare_models(model, model, ({given: image} for image in images[:3]))
    assert found.sqnr == math.inf
    assert found.unmatched == 0
    assert found.first is None
    assert all(t.noise == 0 for t in found.tensors)


def test_models_with_other_edges_are_refused() -> None:
    model = tflq.load(FLOAT)
    graph = view(model)
    other = replace(model, subgraphs=(replace(graph.record, outputs=(graph.op(0).outputs[0],)),), signature_defs=None)
    with pytest.raises(InputError, match="outputs"):
        compare_models(model, other, [])


def test_sums_of_one_tensor() -> None:
    sums = Fidelity("x", "ADD", 0)
    sums.add(np.array([3.0, 4.0], np.float32), np.array([3.5, 4.0]))
    assert (sums.elements, sums.power, sums.noise, sums.bias, sums.largest) == (2, 25.0, 0.25, 0.5, 0.5)
    assert sums.sqnr == pytest.approx(20.0)  # one sample has no mean to vary about
    sums.add(np.array([5.0, 4.0], np.float32), np.array([5.0, 4.0]))
    assert (sums.signal, sums.judging, sums.is_constant) == (2.0, 4.0, False)
    assert sums.sqnr == pytest.approx(10 * math.log10(4.0 / 0.25))
    assert sums.holders == (0, 1)


@pytest.mark.parametrize(("hits", "trials", "low", "high"), [(8, 10, 0.4902, 0.9433), (0, 20, 0.0, 0.1611)])
def test_wilson_interval(hits: int, trials: int, low: float, high: float) -> None:
    assert wilson(hits, trials) == pytest.approx((low, high), abs=5e-5)  # figures of the published formula


def test_ties_that_coarse_steps_made_are_counted_and_told() -> None:
    found = DecisionAgreement()
    for before, after in (
        ([3.0, 2.0, 1.0], [1.0, 1.0, 0.0]),
        ([2.0, 2.0, 1.0], [1.0, 1.0, 0.0]),
        ([1.0, 2.0], [0.0, 1.0]),
    ):
        found.add(np.array(before), np.array(after), None)
    assert (found.tied, len(found.flips)) == (1, 0)
    assert [
        text
        for text in agreement_texts(found)
        if "in 1 of 3 samples two or more classes get the same largest score" in text
    ]


def test_divergence_of_distributions() -> None:
    assert kl(np.array([0.5, 0.5]), np.array([0.25, 0.75])) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert math.isnan(kl(np.array([-1.0, 2.0]), np.array([0.5, 0.5])))
