"""Causes of a suite's failing cases: jointly sought, counted, and never in a verdict's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import difference
from tflq.devices.suites import causes
from tflq.devices.suites.causes import _Found, explained_groups, group_of
from tflq.devices.suites.jobs import CaseFolder
from tflq.devices.suites.judge import CaseResult, Judged, Verdicts, judge
from tflq.devices.suites.make import Case, SuiteOrder, arrays, model_of, read_suite
from tflq.devices.suites.run import make_suite, run_suite
from tflq.devices.suites.target import finish, target_of
from tflq.engine.api.files import load
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.conform import cause_texts, conform_report, verdict_document
from tflq.model.ir import Model, view
from tflq.model.storage.arrays import opened

Array = NDArray[Any]
STEP = 150


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small suite of the default profile."""
    place = str(tmp_path_factory.mktemp("suite") / "suite.npz")
    make_suite(place, SuiteOrder(every=STEP))
    return place


def judged(path: str, place: Path, most: int) -> tuple[Judged, ...]:
    """The cases that another arithmetic fails, `most` groups of them explained."""
    with opened(path) as archive:
        suite = read_suite(archive)
        target, job = target_of("profile:tflm"), CaseFolder(place)
        job.create()
        finish(target, job, archive, suite.cases, 500)
        return causes.explain(job, archive, judge(job, archive, suite.cases, {}), suite.profile, most)


@pytest.mark.slow
def test_how_many_groups_were_explained_is_said(path: str, tmp_path: Path) -> None:
    cases = judged(path, tmp_path, 1)
    done, groups = explained_groups(cases)
    assert done == 1 < groups
    verdicts = Verdicts("t", "litert-ref", "standard", cases)
    assert next(cause_texts(verdicts)).startswith(f"causes searched for 1 of {groups} groups")
    assert any(
        line.text.startswith("causes searched for 1 of") for line in lines_of(conform_report(verdicts, "suite.npz"))
    )
    assert verdict_document(verdicts)["explained"] == {"groups": 1, "of": groups}


@pytest.mark.slow
def test_a_fault_in_an_explanation_loses_no_verdict(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = run_suite(path, target_of("profile:tflm"))

    def raising(*_: Any, **__: Any) -> Any:
        raise OverflowError("out of bounds")

    monkeypatch.setattr(causes, "investigate", raising)
    verdicts = run_suite(path, target_of("profile:tflm"))
    assert [one.result for one in verdicts.cases] == [one.result for one in right.cases]
    faults = [one for one in verdicts.cases if one.fault]
    assert len(faults) == explained_groups(verdicts.cases)[0] > 0
    assert faults[0].fault == "OverflowError: out of bounds"
    assert any("OverflowError" in text for text in cause_texts(verdicts))
    assert verdict_document(verdicts)["cases"][right.cases.index(right.failing[0])]["result"] == "differs"


def test_the_cause_of_most_groups_comes_before_others() -> None:
    one = _Found({"a": (0,), "float64": (0, 1), "b": (0, 1)}, ("a", "b"))
    assert one.chosen({"a": 1, "float64": 3, "b": 1}) == ("float64",)
    assert one.chosen({"a": 5, "float64": 1, "b": 1}) == ("b",)
    assert _Found({"a": (0,), "float64": (0,)}, ("a",)).chosen({"a": 1, "float64": 1}) == ("a",)
    assert _Found({}, ()).chosen({}) == ()


@pytest.mark.slow
def test_one_cause_is_compared_with_further_cases_of_its_group(path: str, tmp_path: Path) -> None:
    cases = judged(path, tmp_path, 12)
    by_group: dict[Any, list[Judged]] = {}
    for one in cases:
        if one.causes:
            by_group.setdefault(group_of(one), []).append(one)
    assert by_group
    for group in by_group.values():
        assert set(group[0].causes) & set(group[-1].causes)


def in_floats(op: str, model: Model, codes: Array) -> Array:
    """A rectifier or a rescale as runtimes without integer kernels compute it: float32, half to even."""
    x, y = (view(model).tensors[t].quantization for t in (0, view(model).outputs[0]))
    assert x is not None
    assert y is not None
    reals = x.scale[0] * (codes.astype(np.int32) - np.int32(x.zero_point[0])).astype(np.float32)
    reals = np.maximum(reals, np.float32(0)) if op == "RELU" else reals
    limits = np.iinfo(codes.dtype)
    return np.clip(np.rint(reals / y.scale[0]) + y.zero_point[0], limits.min, limits.max).astype(codes.dtype)


class Answers:
    """The answers of a target by case: the part of a Job that explanations read."""

    def __init__(self) -> None:
        self.made: dict[str, list[list[Array]]] = {}

    def outputs(self, case: Case, _like: Any) -> list[list[Array]]:
        return self.made[case.id]


@pytest.mark.slow
def test_one_cause_is_named_for_all_groups_of_a_float_runtime(tmp_path: Path) -> None:
    place = str(tmp_path / "suite.npz")
    make_suite(place, SuiteOrder(level="smoke"))
    job, cases = Answers(), []
    with opened(place) as archive:
        for case in read_suite(archive).cases:
            if case.is_refused or case.types not in ("int8 -> int8", "uint8 -> uint8"):
                continue
            if case.op in ("RELU", "QUANTIZE"):
                model = load(model_of(archive, case))
                given = [arrays(archive, sample)[0] for sample in case.samples]
                job.made[case.id] = [[in_floats(case.op, model, codes)] for codes in given]
                pairs = zip(job.made[case.id], (arrays(archive, sample) for sample in case.expected), strict=True)
                apart = [d for made, want in pairs if not (d := difference(want[0], made[0])).same]
                cases += [Judged(case, CaseResult.DIFFERS, "", 0, apart[0])] if apart else []
        done = causes.explain(job, archive, cases, "litert-ref")  # type: ignore[arg-type]
    explained = [one for one in done if one.is_explained]
    assert {one.case.op for one in explained} == {"RELU", "QUANTIZE"}
    assert all("computed in float32, rounded half to even" in one.causes for one in explained)
    assert not any("xnnpack" in name for one in explained for name in one.causes)
