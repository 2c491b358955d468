"""Differing operators by consequence: what changes the outputs most comes first, the noise of floats last."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import tflq
from support import suites
from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.amplification import is_noise
from tflq.diagnosis.findings import Findings, investigate
from tflq.engine.api.many import part_of
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

MODELS = suites.ROOT / "golden" / "models"
Values = Mapping[int, np.ndarray]


@pytest.fixture(scope="module")
def model() -> Model:
    return tflq.load(MODELS / "digits_autoencoder_float.tflite")


@pytest.fixture(scope="module")
def values(model: Model) -> Values:
    graph = view(model)
    rng = np.random.default_rng(3)
    fed = {t: rng.random(graph.tensors[t].shape, np.float32) for t in graph.inputs}
    return {**fed, **run(make_plan(model, by_name("litert-ref")), fed, keep_all=True).values}


def faulty(model: Model, values: Values, faults: Mapping[int, float]) -> Findings:
    """Return the findings on a device that adds to one element of some operators' results."""
    return investigate(model, [Dump("", changed(model, values, faults))], by_name("litert-ref"))


def changed(model: Model, values: Values, faults: Mapping[int, float]) -> dict[int, np.ndarray]:
    """Return all tensors if some operators' results are wrong and every later operator goes on from there."""
    graph, found = view(model), dict(values)
    for index, step in faults.items():
        tensor = graph.op(index).outputs[0]
        wrong = found[tensor].copy()
        size = np.abs(wrong.astype(np.float64))
        place = int(np.argmax(size if wrong.dtype.kind == "f" else -size))
        wrong.reshape(-1)[place] += wrong.dtype.type(step)
        found[tensor] = wrong
        rest = range(index + 1, len(graph.ops))
        if rest:
            part = part_of(model, rest, found)
            found |= part.run(part.plan(by_name("litert-ref")))
    return found


def alone(model: Model, values: Values, index: int, step: float) -> float:
    found = faulty(model, values, {index: step})
    assert found.amplification is not None
    return found.amplification.effect


def test_the_worst_consequence_is_explained_first(model: Model, values: Values) -> None:
    count = len(view(model).ops)
    small, large = alone(model, values, 0, 1e-3), alone(model, values, count - 1, 10.0)
    assert 0 <= small < large
    found = faulty(model, values, {0: 1e-3, count - 1: 10.0})
    assert [growth.index for growth in found.growths] == [count - 1, 0]
    assert found.first is not None
    assert found.first.index == 0
    assert found.explained is not None
    assert found.explained.index == count - 1


def test_noise_comes_last_even_if_it_grows(model: Model, values: Values) -> None:
    count = len(view(model).ops)
    largest = float(np.abs(values[view(model).op(0).outputs[0]]).max())
    found = faulty(model, values, {0: float(np.spacing(np.float32(largest))), count - 1: 1e-3})
    assert [o.index for o in found.noise] == [0]
    assert [growth.index for growth in found.growths] == [count - 1, 0]


def test_differences_of_codes_are_no_noise() -> None:
    model = tflq.load(MODELS / "digits_autoencoder_int8.tflite")
    graph = view(model)
    fed = {t: np.zeros(graph.tensors[t].shape, np.int8) for t in graph.inputs}
    values = {**fed, **run(make_plan(model, by_name("litert-ref")), fed, keep_all=True).values}
    found = faulty(model, values, {1: -1})
    assert [is_noise(o) for o in found.differing] == [False]


def test_an_operator_that_was_asked_for_is_explained(model: Model, values: Values) -> None:
    dump = Dump("", changed(model, values, {0: 1e-3, len(view(model).ops) - 1: 10.0}))
    found = investigate(model, [dump], by_name("litert-ref"), op=0)
    assert found.explained is not None
    assert found.explained.index == 0
