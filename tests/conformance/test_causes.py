"""Causes of a suite's failing cases: jointly sought, counted, and never in a verdict's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tflq.conformance import causes
from tflq.conformance.causes import _Found, explained_groups
from tflq.conformance.jobs import Job
from tflq.conformance.judging import Judged, Verdicts, judge
from tflq.conformance.making import Order
from tflq.conformance.session import make_suite, run_suite
from tflq.conformance.suite import read_suite
from tflq.conformance.targets import finish, target_of
from tflq.report.conform.document import verdict_document
from tflq.report.conform.lines import cause_texts, verdict_lines
from tflq.storage.archive import opened

STEP = 150


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small suite of the default profile."""
    place = str(tmp_path_factory.mktemp("suite") / "suite.npz")
    make_suite(place, Order(every=STEP))
    return place


def judged(path: str, place: Path, most: int) -> tuple[Judged, ...]:
    """The cases that another arithmetic fails, `most` groups of them explained."""
    with opened(path) as archive:
        suite = read_suite(archive)
        target, job = target_of("profile:tflm"), Job(place)
        job.create()
        job.ask_for(suite.cases)
        for case in suite.cases:
            job.add(case, archive)
        finish(target, job, suite.cases, 500)
        return causes.explained(job, archive, judge(job, archive, suite.cases, {}), suite.profile, most)


def test_how_many_groups_were_explained_is_said(path: str, tmp_path: Path) -> None:
    cases = judged(path, tmp_path, 1)
    done, groups = explained_groups(cases)
    assert done == 1 < groups
    verdicts = Verdicts("t", "litert-ref", "standard", cases)
    assert next(cause_texts(verdicts)).startswith(f"causes sought for 1 of {groups} groups")
    assert any(line.text.startswith("causes sought for 1 of") for line in verdict_lines(verdicts))
    assert verdict_document(verdicts)["explained"] == {"groups": 1, "of": groups}


def test_a_fault_in_an_explanation_loses_no_verdict(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = run_suite(path, target_of("profile:tflm"))

    def raising(*_: Any, **__: Any) -> Any:
        raise OverflowError("out of bounds")

    monkeypatch.setattr(causes, "investigate", raising)
    monkeypatch.setattr(causes, "_told_apart", raising)
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


def test_one_cause_is_compared_with_further_cases_of_its_group(path: str, tmp_path: Path) -> None:
    cases = judged(path, tmp_path, 12)
    by_group: dict[Any, list[Judged]] = {}
    for one in cases:
        if one.causes:
            by_group.setdefault(causes.group_of(one), []).append(one)
    assert by_group
    for group in by_group.values():
        assert set(group[0].causes) & set(group[-1].causes)
