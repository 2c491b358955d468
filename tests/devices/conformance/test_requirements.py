"""Requirements: frozen levels, the cases that cover them, and claims with exclusions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.commands import tflq, validate
from tflq.devices.grids import drafts
from tflq.devices.suites import changes as subject
from tflq.devices.suites.draft import kind_of
from tflq.devices.suites.judge import CaseResult, Judged, Verdicts
from tflq.devices.suites.make import Case
from tflq.face.report.verbs.conform import verdict_document


def case(op: str, types: str, aim: str, *, tells: tuple[str, ...] = (), refused: bool = False) -> Case:
    expected = () if refused else (("e",),)
    return Case(f"00001-{op.lower()}", op, types, "smoke", aim, tells, "m", (("s",),), expected)


def test_the_levels_of_version_2_are_what_is_generated() -> None:
    frozen = subject.levels()
    found = list(subject.requirements())
    assert len({name for name, _ in found}) == len(found) > 600
    assert frozen["version"] == 2
    for level in subject.LEVELS:
        assert frozen["levels"][level] == [name for name, own in found if own == level]


def test_every_operator_and_type_has_a_case() -> None:
    asked = {f"{draft.op}/{kind_of(draft.types)}/computes" for draft in drafts(0, "smoke")}
    wanted = {name for name, _ in subject.requirements() if name.endswith("/computes")}
    assert len(wanted) > 200
    assert not wanted - asked


def test_types_of_weights_states_and_indices_are_no_requirements() -> None:
    names = {name for name, _ in subject.requirements()}
    assert {"SVDF/int8/computes", "LSTM/uint8/computes", "RESHAPE/int16/computes", "ARG_MAX/uint8/computes"} <= names
    wrong = {"SVDF/int16/computes", "UNIDIRECTIONAL_SEQUENCE_LSTM/uint8/computes"}  # time weights; weights of floats
    wrong |= {"SUM/int16/computes"}  # half of the output is not written
    wrong |= {"ELU/int8/computes"}  # the reference resolver does not register it
    assert not names & wrong


def test_a_case_covers_its_options_and_rounding() -> None:
    geometry = case(
        "CONV_2D", "int8 int8 int32 -> int8", "geometry: stride_w 3, padding VALID, height 7, activation RELU6"
    )
    assert set(subject.cover_by(geometry)) == {
        f"CONV_2D/int8/{aspect}" for aspect in ("computes", "stride_w=3", "padding=VALID", "activation=RELU6")
    }
    tie = case("CONV_2D", "uint8 uint8 int32 -> uint8", "ties; RELU", tells=("litert-ref+single-rounding",))
    assert set(subject.cover_by(tie)) == {
        f"CONV_2D/uint8/{aspect}" for aspect in ("computes", "activation=RELU", "rounding")
    }
    assert list(subject.cover_by(replace(tie, expected=()))) == []
    assert list(subject.cover_by(case("ADD", "float32 float32 -> float32", "plain"))) == []


def claimed(results: dict[str, CaseResult], exclusions: tuple[subject.ExcludedCase, ...] = ()) -> subject.Claim:
    """Claim a run with one case for every requirement of smoke and standard; `results` are those of some."""
    frozen = subject.levels()["levels"]
    cases = []
    for name in (*frozen["smoke"], *frozen["standard"]):
        op, kind, aspect = name.split("/")
        option, _, value = aspect.partition("=")
        aim = f"geometry: {option} {value}" if value else "plain"
        tells = ("litert-ref+single-rounding",) if aspect == "rounding" else ()
        result = results.get(name, CaseResult.PASSES)
        cases.append(Judged(case(op, f"{kind} -> {kind}", aim, tells=tells), result))
    return subject.claim_of(_verdicts(cases), exclusions)


def _verdicts(cases: list[Judged]) -> Any:
    class Some:
        target = "./npu"

    some = Some()
    some.cases = tuple(cases)  # type: ignore[attr-defined]
    return some


def test_a_run_that_passes_meets_standard_and_not_full() -> None:
    found = claimed({})
    assert found.met == "standard"
    assert found.levels[-1].without_case
    assert not found.levels[0].failed


def test_one_failure_breaks_every_level_until_it_is_excluded() -> None:
    wrong = {"CONV_2D/int8/rounding": CaseResult.DIFFERS}
    assert claimed(wrong).met == ""  # the same case covers `computes`
    excluded = subject.ExcludedCase("CONV_2D/int8/*", "no such unit", "2026-11-28")
    found = claimed(wrong, (excluded, subject.ExcludedCase("CONV_3D/*", "none", "2026-11-28")))
    assert found.met == "standard"
    assert "CONV_2D/int8/rounding" in found.levels[1].excluded
    assert found.unused == ("CONV_3D/*",)


def test_leaving_everything_out_meets_nothing() -> None:
    assert claimed({}, (subject.ExcludedCase("*", "all", "2026-11-28"),)).met == ""


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "- CONV_2D",
        "- {requirement: a, reason: b}",
        "- {requirement: a, reason: '', date: 2026-11-28}",
        "- {requirement: a, reason: b, date: soon}",
        "- {requirement: a, reason: b, date: 2026-11-28, colour: blue}",
    ],
)
def test_malformed_exclusions_are_refused(text: str, tmp_path: Path) -> None:
    from tflq.errors import InputError

    (tmp_path / "e.yaml").write_text(text)
    with pytest.raises(InputError):
        subject.read_exclusions(str(tmp_path / "e.yaml"))


def test_the_command_claims_and_its_exit_code_holds(tmp_path: Path) -> None:
    from tflq.verbs.conform import conform, make_suite

    suite, run = tmp_path / "s.npz", tmp_path / "run.json"
    make_suite(str(suite), level="smoke", shard=(1, 300))
    verdicts = conform(str(suite), "profile:litert-ref")
    run.write_text(json.dumps(verdict_document(verdicts)), encoding="utf-8")
    done = tflq("conform", "report", run, "--json", "--level", "smoke")
    document = json.loads(done.stdout)
    validate(document, "claim")
    assert (done.exit_code, document["met"]) == (1, None)
    assert document["levels"][0]["failed"] == []
    text = tflq("conform", "report", run)
    assert "meets no level" in text.output
    assert isinstance(verdicts, Verdicts)
