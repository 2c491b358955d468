"""One arithmetic for many failing cases: it is named in words, counted, and certain only with enough evidence."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import suites
from support.commands import tflq, validate
from support.planted import Device, Fields, PlantedTarget
from tflq.devices.learning import joint
from tflq.devices.learning.joint import causes_of_suite
from tflq.devices.learning.words import requantizer_in_words
from tflq.devices.suites.causes import joint_causes
from tflq.devices.suites.jobs import CaseFolder
from tflq.devices.suites.judge import Verdicts
from tflq.devices.suites.make import Suite, SuiteOrder, read_suite, write_suite
from tflq.devices.suites.run import judged_cases, make_suite
from tflq.devices.suites.target import target_of
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.siblings import Joint, JointCause, Reproduced
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.numerics.requantizer import point_of
from tflq.engine.profiles import by_name
from tflq.engine.profiles.file import with_rows
from tflq.face.report.joint import certainty_text, counts_text, joint_section
from tflq.face.report.verbs.conform import junit, verdict_document
from tflq.model.ir import view
from tflq.model.storage.arrays import opened

CONTRACTIONS = ("CONV_2D", "FULLY_CONNECTED", "QUANTIZE")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A suite of int8 contractions."""
    folder = tmp_path_factory.mktemp("suite")
    whole = str(folder / "whole.npz")
    make_suite(whole, SuiteOrder(level="smoke", every=3))
    with opened(whole) as archive:
        suite = read_suite(archive)
        kept = [c for c in suite.cases if c.op in CONTRACTIONS and c.types.endswith("-> int8") and not c.is_refused]
        digests = {d for c in kept for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
        data = {name: archive[f"data/{name}"] for name in digests}
    write_suite(str(folder / "suite.npz"), replace(suite, cases=tuple(kept)), data)
    return str(folder / "suite.npz")


def ran(path: str, target: Any) -> Verdicts:
    """The verdicts with joint causes; causes of single cases are not searched."""
    with opened(path) as archive:
        suite = read_suite(archive)
        done = judged_cases(archive, suite, target, 500, 0, naming=causes_of_suite)
    return Verdicts(target.name, suite.profile, suite.level, done.cases, done.endings, joint=done.joint)


@pytest.mark.slow
def test_a_planted_requantizer_is_named_for_all_kernels(path: str) -> None:
    fields = Fields(mantissa=15, last="half up")
    verdicts = ran(path, PlantedTarget(Device(fields, "")))
    first = joint_causes(verdicts.cases, verdicts.joint)[0]
    assert requantizer_in_words(point_of(asdict(fields))) in (first.name, *first.others)
    assert all(kernel.is_whole for kernel in first.kernels)
    assert {"CONV_2D", "FULLY_CONNECTED"} <= set(first.operators)
    failing = {one.case.id for one in verdicts.failing}
    assert set(first.names) <= failing
    assert len(first.names) == first.failing
    assert all(first.name in one.causes for one in verdicts.failing if one.case.id in first.names)


@pytest.mark.slow
def test_a_fault_outside_the_grammar_has_no_certain_cause(path: str) -> None:
    verdicts = ran(path, PlantedTarget(Device(Fields(mantissa=31, first="half up"), "rounds to odd")))
    assert verdicts.failing
    causes = joint_causes(verdicts.cases, verdicts.joint)
    assert all(cause.certainty != Certainty.CERTAIN for cause in causes)
    assert all(kernel.failing < kernel.all_failing for _, kernel in verdicts.joint.nearest)


@pytest.mark.slow
def test_a_target_that_passes_has_no_cause(path: str) -> None:
    assert ran(path, target_of("profile:litert-ref")).joint == Joint()


@pytest.mark.slow
def test_an_error_of_the_search_loses_no_verdict(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_: Any) -> Any:
        raise OverflowError("out of bounds")

    monkeypatch.setattr(joint, "name_jointly", raising)
    verdicts = ran(path, PlantedTarget(Device(Fields(mantissa=15), "")))
    assert verdicts.failing
    assert verdicts.joint == Joint(fault="OverflowError: out of bounds")


def cause(*kernels: Reproduced, others: tuple[str, ...] = ()) -> JointCause:
    failing = sum(kernel.failing for kernel in kernels)
    names = tuple(map(str, range(failing)))
    operators = tuple(kernel.op for kernel in kernels)
    return JointCause("dequantizes", others, 1, sum(k.all_failing for k in kernels), operators, names, kernels)


def test_a_cause_is_certain_only_with_evidence_and_without_rivals() -> None:
    whole = Reproduced("ADD", "int8 int8 -> int8", 5, 5, 4, 4, bits=20, needed=12)
    assert cause(whole).certainty == Certainty.CERTAIN
    assert cause(whole, others=("floats",)).certainty == Certainty.LIKELY
    assert cause(replace(whole, bits=11)).certainty == Certainty.LIKELY
    assert cause(whole, replace(whole, op="SUB", reproduced=4, failing=3)).certainty == Certainty.LIKELY


def test_counts_and_doubts_are_stated_in_words() -> None:
    part = Reproduced("ADD", "int8 int8 -> int8", 79, 80, 40, 41)
    assert counts_text(cause(part)) == "40 of 41"
    assert certainty_text(cause(part)) == "likely: misses 1 of 80"
    whole = replace(part, reproduced=80, failing=41)
    assert counts_text(cause(whole)) == "all 41"
    assert certainty_text(cause(replace(whole, needed=9))) == "likely: little evidence in 1 of 1 kernel"
    assert certainty_text(cause(whole, others=("floats",))) == "likely: others give the same bits"
    assert certainty_text(cause(whole)) == "certain"
    assert counts_text(replace(cause(part), kernels=())) == "41"
    assert certainty_text(replace(cause(part), kernels=())) == ""
    assert list(joint_section(Joint())) == []


@pytest.mark.slow
def test_documents_carry_the_cause(path: str) -> None:
    verdicts = ran(path, PlantedTarget(Device(Fields(mantissa=15), "")))
    document = verdict_document(verdicts)
    validate(document, "conform")
    first = document["joint"][0]
    assert first["certainty"] in ("certain", "likely")
    assert sum(first["name"] in one["causes"] for one in document["cases"]) == first["cases"]
    tree = junit(verdicts)
    assert sum(first["name"] in (node.text or "") for node in tree.iter("failure")) == first["cases"]
    assert any(first["name"] in node.get("value", "") for node in tree.iter("property"))


@pytest.mark.slow
def test_commands_name_the_arithmetic(path: str) -> None:
    done = tflq("conform", "run", path, "--target", "profile:litert-ref+single-rounding", "--json")
    assert done.exit_code == 1, done.output
    causes = json.loads(done.stdout)["joint"]
    assert any(cause["kernels"] and cause["certainty"] for cause in causes)
    assert "litert-ref+single-rounding" in (causes[0]["name"], *causes[0]["others"])


MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def dumped(folder: Path, point: dict[str, Any]) -> str:
    """Write all tensors of a model whose convolutions requantize by a point of the grammar."""
    model, types = load(MODEL), "int8 int8 int32 -> int8"
    rows = [{"op": op, "types": types, "requantizer": point} for op in ("CONV_2D", "DEPTHWISE_CONV_2D")]
    plan = make_plan(model, with_rows(by_name("litert-ref"), rows))
    given = {t: np.random.default_rng(0).integers(-128, 128, view(model).tensors[t].shape) for t in plan.inputs}
    values = run(plan, {t: v.astype(np.int8) for t, v in given.items()}, keep_all=True).values
    names = view(model).tensors
    path = str(folder / "dump.npz")
    np.savez(path, **{str(names[t].name): v for t, v in values.items() if names[t].name})
    return path


@pytest.mark.slow
def test_a_rounding_that_no_runtime_has_is_not_certainly_another(tmp_path: Path) -> None:
    dump = dumped(tmp_path, {"mantissa": 15, "last": "half to even"})
    done = tflq("explain", MODEL, "--dump", dump, "--json")
    explanation = json.loads(done.stdout)["explanation"]
    named = [name for cause in explanation["exact"] for name in (cause["name"], *cause["also"])]
    assert "multiplier of 16 bits, rounds half to even" in named


@pytest.mark.slow
def test_explain_names_a_form_where_nothing_known_fits(tmp_path: Path) -> None:
    dump = dumped(
        tmp_path, {"multiplier": "float32", "mantissa": 15, "first": "half away from zero", "last": "half to even"}
    )
    done = tflq("explain", MODEL, "--dump", dump, "--json")
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    validate(document, "explain")
    assert document["explanation"]["exact"] == []
    assert document["explanation"]["certainty"] != "certain"
    first = document["joint"][0]
    assert any("15 bits" in name for name in (first["name"], *first["others"]))
    assert first["operators"] == ["CONV_2D", "DEPTHWISE_CONV_2D"]
    text = tflq("explain", MODEL, "--dump", dump).output
    assert "failing operators" in text
    assert "all 13" in text


@pytest.mark.slow
def test_a_suite_and_a_job_of_another_profile_are_refused_by_name(path: str) -> None:
    with opened(path) as archive:
        suite: Suite = read_suite(archive)
        assert causes_of_suite(CaseFolder("none"), archive, (), "no-such-profile").fault.startswith("UnknownNameError")
    assert suite.cases
