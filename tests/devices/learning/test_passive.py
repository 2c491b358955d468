"""Dumps as evidence: what was recorded of a profile is learned as that profile, and a single answer is not enough."""

from __future__ import annotations

import numpy as np
import pytest

from support import suites
from tflq.comparison.evidence.dumps import Dump, dump_of
from tflq.devices.learning.findings import LearnState
from tflq.devices.learning.learner import learn_from_dumps
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

MODELS = suites.ROOT / "golden" / "models"


def dumped(model: Model, profile: str, samples: int) -> list[Dump]:
    """Return all tensors of a model on random inputs, under a profile."""
    rng, dumps = np.random.default_rng(0), []
    graph = view(model)
    for _ in range(samples):
        plan = make_plan(model, by_name(profile))
        given = {t: rng.integers(-128, 128, graph.tensors[t].shape).astype(np.int8) for t in graph.inputs}
        values = run(plan, given, keep_all=True).values
        named = {graph.tensors[t].name: value for t, value in values.items()}
        dumps.append(dump_of(model, named))
    return dumps


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["litert-ref", "tflm+single-rounding"])
def test_dumps_of_a_profile_are_learned_as_it(profile: str) -> None:
    model = load(MODELS / "digits_mobilenet_int8.tflite")
    found = learn_from_dumps([(model, dumped(model, profile, 2))], "dumps")
    learned = [one for one in found.operators if one.state is LearnState.LEARNED]
    assert {one.subject.op for one in learned} >= {"CONV_2D", "DEPTHWISE_CONV_2D"}
    assert all(profile in one.plain for one in learned if "CONV_2D" in one.subject.op)
    assert all(one.form is not None and one.rows() for one in learned)


@pytest.mark.slow
def test_one_answer_confirms_nothing() -> None:
    model = load(MODELS / "digits_mobilenet_int8.tflite")
    found = learn_from_dumps([(model, dumped(model, "litert-ref", 1))], "dumps")
    single = [one for one in found.operators if one.subject.op in ("SOFTMAX", "FULLY_CONNECTED")]
    assert single
    assert all(one.state is LearnState.UNKNOWN and not one.rows() for one in single)
