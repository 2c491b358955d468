"""Answers from few of many samples: the same as from all of them, or from all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import tflq, validate
from support.devices import T, one
from support.suites import ROOT
from tflq.comparison.evidence.dumps import dump_of
from tflq.diagnosis import why
from tflq.diagnosis.findings import selections
from tflq.diagnosis.profile_fit import FitVerdict
from tflq.diagnosis.why import Answer, DeviceEvidence
from tflq.engine.api.files import load, save
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.face.report.verbs.why import headline
from tflq.model.ir import Model

MANY = 24
AUTOENCODER = str(ROOT / "golden" / "models" / "digits_autoencoder_int8.tflite")


def multiplied() -> Model:
    """A MUL whose results round differently under many profiles."""
    x = T("int8", (1, 40), 0.0123, 3)
    return one("MUL", [x, T("int8", (1, 40), 0.031, -5)], T("int8", (1, 40), 0.0031, 1))


def samples_of(model: Model, profiles: Sequence[str]) -> list[dict[int, Any]]:
    """Inputs and results, each sample as the profile of its place computes it."""
    samples = []
    for seed, name in enumerate(profiles):
        random = np.random.default_rng(seed)
        plan = make_plan(model, by_name(name))
        inputs = {t: random.integers(-60, 60, plan.operands[t].shape).astype(np.int8) for t in plan.inputs}
        samples.append({t: np.array(v) for t, v in run(plan, inputs, keep_all=True).values.items()})
    return samples


def answered(model: Model, samples: Sequence[dict[int, Any]], tell: Callable[..., None] = lambda *_: None) -> Answer:
    evidence = DeviceEvidence(tuple(samples), tuple(dump_of(model, sample) for sample in samples))
    return why.answer(model, evidence, "litert-ref", progress=tell)


def facts(answer: Answer) -> dict[str, Any]:
    """Return the claims of an answer, without its counts of elements."""
    assert answer.fit is not None
    assert answer.findings is not None
    explanation = answer.findings.explanation
    exact = () if explanation is None else explanation.exact
    return {
        "headline": headline(answer),
        "verdict": answer.verdict,
        "fitting": answer.fit.fitting,
        "certainty": answer.certainty,
        "causes": {frozenset(member.name for member in cause.members) for cause in exact},
        "operators": [(o.index, o.differs) for o in answer.findings.operators],
        "sample": answer.findings.sample,
    }


def of_all(monkeypatch: pytest.MonkeyPatch, model: Model, samples: Sequence[dict[int, Any]]) -> Answer:
    with monkeypatch.context() as patch:
        patch.setattr(why, "selections", lambda rows: [tuple(range(len(rows)))])
        found = answered(model, samples)
    assert found.compared == 0
    return found


@pytest.mark.parametrize("device", ["tflite-2.7-opt", "litert-ref"])
def test_few_samples_give_the_answer_of_all(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = multiplied()
    samples = samples_of(model, [device] * MANY)
    found = answered(model, samples)
    assert found.fit is not None
    assert 0 < found.compared < MANY
    assert found.samples == MANY
    assert facts(found) == facts(of_all(monkeypatch, model, samples))


@pytest.mark.slow
def test_a_profile_that_fails_on_a_sample_left_out_is_not_named() -> None:
    """The base reproduces this sample, so that it is the least telling."""
    model = load(AUTOENCODER)
    found = answered(model, samples_of(model, ["litert-opt"] * 11 + ["litert-ref"]))
    assert found.fit is not None
    assert (found.compared, found.fit.fitting) == (0, ())


@pytest.mark.slow
def test_one_element_of_one_sample_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = multiplied()
    samples = samples_of(model, ["litert-ref"] * MANY)
    (output,) = set(samples[0]) - set(make_plan(model, by_name("litert-ref")).inputs)
    samples[17][output][0, 5] ^= 1
    found = answered(model, samples)
    assert facts(found) == facts(of_all(monkeypatch, model, samples))
    assert facts(found)["operators"] == [(0, True)]
    assert found.findings is not None
    assert found.findings.sample == 17


def test_up_to_eight_samples_are_all_compared() -> None:
    model = multiplied()
    assert answered(model, samples_of(model, ["litert-xnnpack"] * 8)).compared == 0


def test_progress_gives_no_totals() -> None:
    """Steps take different times, so that an estimate from their number would grow."""
    told = list[tuple[str, int, int]]()
    model = multiplied()
    answered(model, samples_of(model, ["litert-xnnpack"] * MANY), lambda *words: told.append(words))
    assert {(done, total) for _, done, total in told} == {(0, 0)}
    assert "3 of 24 samples, with all profiles" in [what for what, _, _ in told]


def rows(*counts: Sequence[int]) -> Any:
    class Difference:
        problem = ""

        def __init__(self, differing: int) -> None:
            self.differing = self.elements = differing

    class Operator:
        def __init__(self, differing: int) -> None:
            self.differences = {0: Difference(differing)} if differing else {}

    return tuple(tuple(Operator(count) for count in row) for row in counts)


def test_selections_show_every_operator_first() -> None:
    found = list(selections(rows(*[(9, 0, 0)] * 10, (0, 2, 0), *[(8, 0, 0)] * 20, (0, 1, 1))))
    assert found[0] == (0, 1, 31)
    assert [len(each) for each in found] == [3, 12, 32]
    assert found[-1] == tuple(range(32))


@pytest.mark.parametrize("count", [0, 1, 8])
def test_few_samples_are_one_selection(count: int) -> None:
    assert list(selections(rows(*[(1, 2)] * count))) == [tuple(range(count))]


def test_models_without_operators_have_selections() -> None:
    assert list(selections(rows(*[()] * 40)))[-1] == tuple(range(40))


@pytest.mark.slow
def test_a_model_needs_few_samples() -> None:
    model = load(AUTOENCODER)
    found = answered(model, samples_of(model, ["litert-opt"] * MANY))
    assert found.fit is not None
    assert 0 < found.compared <= 5
    assert found.fit.verdict == FitVerdict.FITS
    assert "litert-opt" in found.fit.fitting
    assert "litert-ref" not in found.fit.fitting


def test_the_report_and_the_document_state_what_was_not_compared(tmp_path: Path) -> None:
    model, path, dump = multiplied(), str(tmp_path / "m.tflite"), tmp_path / "d.npz"
    save(model, path)
    samples = samples_of(model, ["litert-ref"] * MANY)
    names = [spec.name for spec in model.subgraphs[0].tensors]
    np.savez(dump, **{f"s{k}_{names[t]}": value for k, one in enumerate(samples) for t, value in one.items()})
    shown = tflq("why", path, dump)
    assert f"12 of {MANY} were enough" in shown.output, shown.output
    document = json.loads(tflq("why", path, dump, "--json").stdout)
    validate(document, "why")
    (fact,) = [fact for fact in document["facts"] if fact["kind"] == "samples-enough"]
    assert fact["values"] == {"compared": 12, "samples": MANY}
