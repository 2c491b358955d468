"""`tflq doctor`: what it finds, and that its self-test can fail."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from support.commands import tflq, validate
from tflq.devices.suites import doctor
from tflq.engine.profiles import by_name
from tflq.engine.runtimes import RUNTIMES, Description
from tflq.face.report.render.text import lines_of
from tflq.face.report.verbs.models import doctor_report


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One runtime only: each is a process of its own."""
    monkeypatch.setattr(doctor, "RUNTIMES", {"litert-ref": RUNTIMES["litert-ref"]})


@pytest.mark.slow
def test_it_tells_of_runtimes_and_tests_itself(few: None) -> None:
    result = tflq("doctor", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    validate(found, "doctor")
    assert found["self_test"]["problem"] is None
    assert found["self_test"]["cases"] > 10
    (runtime,) = found["runtimes"]
    assert runtime["version"] is None or runtime["profile"] == "litert-ref" or runtime["reason"]


@pytest.mark.slow
def test_reasons_are_printed_whole() -> None:
    reason = "no module; " + "install it there, or name a Python that has it, " * 4
    row = doctor.Diagnosed("tflm", "tflite-micro", "", "", reason)
    lines = [line.text for line in lines_of(doctor_report(replace(doctor.examine(), runtimes=(row,))))]
    assert any(reason.strip() in line for line in lines)


def test_a_self_test_of_nothing_does_not_pass(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "digests", lambda: (5, "drawn by another NumPy", doctor.RECORDED))
    result = tflq("doctor")
    assert (result.exit_code, "left out" in result.stdout) == (3, True), result.output


@pytest.mark.slow
def test_a_changed_arithmetic_fails_the_self_test(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    _, drawn, _ = doctor.digests()
    assert drawn == doctor.DRAWN
    monkeypatch.setattr(doctor, "by_name", lambda name: by_name("litert-ref+single-rounding"))
    result = tflq("doctor")
    assert (result.exit_code, "differ from those recorded" in result.stdout) == (1, True), result.output


def test_a_runtime_stands_for_the_profile_of_its_version() -> None:
    source = by_name("tflite-2.14-ref").source
    said = Description("x", source.package, source.version, source.resolver, 1, "3", "2", "Linux x86_64")
    assert doctor._describes(replace(source, cpu="any"), said)
    assert not doctor._describes(replace(source, cpu="any"), replace(said, version="2.13.0"))


def test_a_daily_build_has_the_time_of_the_day_in_its_version() -> None:
    source = by_name("tflm").source
    said = Description("tflm", source.package, f"{source.version}182759", source.resolver, 1, "3", "2", "Linux x86_64")
    assert doctor._describes(source, said)
    assert not doctor._describes(source, replace(said, version="0.dev20261024182759"))
    assert not doctor._describes(source, replace(said, version=f"{source.version}-local"))
