"""Two recordings that differ as two releases do are EXPLAINED; what no profile reproduces stays DIFFERS."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from support import suites
from support.commands import tflq, validate
from tflq import load_golden, verify
from tflq.comparison.goldens.golden import Golden
from tflq.comparison.results import Verdict
from tflq.engine.profiles.history import changes_between
from tflq.verbs.drift import diff_goldens

FOLDER = suites.ROOT / "golden" / "singleop"
MODEL = FOLDER / "models" / "tie_fc_i8_0.tflite"
NEW: dict[str, Any] = {
    "name": "litert-ref",
    "package": "ai-edge-litert",
    "version": "2.3.0",
    "platform": "Linux x86_64",
}
OLD: dict[str, Any] = {
    "name": "tflite-runtime-ref",
    "package": "tflite-runtime",
    "version": "2.14.0",
    "platform": "Linux x86_64",
}


def recorded(name: str, runtime: dict[str, Any]) -> Golden:
    """A recording of that runtime, which the file does not name, with the inputs that both share."""
    golden, fed = load_golden(FOLDER / "recorded" / name), load_golden(FOLDER / "recorded" / "tie_fc_i8_0.npz")
    observations = (replace(o, inputs=i.inputs) for o, i in zip(golden.observations, fed.observations, strict=True))
    return replace(golden, observations=tuple(observations), runtime=runtime)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    recorded("tie_fc_i8_0@tflite-2.14-ref.npz", OLD).save(tmp_path / "before.npz")
    return tmp_path / "before.npz"


@pytest.fixture
def after(tmp_path: Path) -> Path:
    recorded("tie_fc_i8_0.npz", NEW).save(tmp_path / "after.npz")
    return tmp_path / "after.npz"


def test_an_upgrade_is_explained_with_its_formulas_and_its_effect(before: Path, after: Path) -> None:
    result = tflq("golden", "diff", before, after, "--model", MODEL)
    assert result.exit_code == 6, result.output
    last = result.stdout.splitlines()[-1]
    assert last.startswith("EXPLAINED")
    assert "outputs by up to 1 LSB, arg-max flips in 0 of 32 rows" in last
    assert "changed between litert-1.2 and litert-1.4: tflite-2.14-ref: DR, M16; litert-ref: DBL" in result.stdout


def test_a_downgrade_is_explained_the_other_way_round(before: Path, after: Path) -> None:
    (change,) = diff_goldens(MODEL, after, before).changes
    assert (change.before, change.after) == ("DBL", "DR, M16")


def test_the_document_has_both_profiles_and_the_change(before: Path, after: Path) -> None:
    document = json.loads(tflq("golden", "diff", before, after, "--model", MODEL, "--json").stdout)
    validate(document, "golden-diff")
    assert document["verdict"] == "explained"
    assert (document["explained"]["first"], document["explained"]["second"]) == ("tflite-2.14-ref", "litert-ref")
    assert [change["op"] for change in document["explained"]["changes"]] == ["FULLY_CONNECTED"]
    assert document["choices"] == [{"rows": 32, "flipped": 0}]


def test_one_bit_that_no_profile_has_is_not_explained(before: Path, after: Path, tmp_path: Path) -> None:
    golden = load_golden(after)
    first = golden.observations[0]
    value = first.outputs[0].copy()
    value.flat[0] ^= 1
    changed = replace(first, outputs=(value,), tensors=MappingProxyType({}))
    replace(golden, observations=(changed, *golden.observations[1:])).save(tmp_path / "odd.npz")
    result = tflq("golden", "diff", before, tmp_path / "odd.npz", "--model", MODEL)
    assert (result.exit_code, "EXPLAINED" in result.stdout) == (1, False)
    result = tflq("verify", MODEL, "--golden", tmp_path / "odd.npz", "--profile", "tflite-2.14-ref")
    assert (result.exit_code, result.stdout.split()[0]) == (1, "DIFFERS")


@pytest.mark.parametrize("runtime", [{}, {**NEW, "name": "my-npu", "package": "npu"}, {**OLD, "version": "2.99.0"}])
def test_a_runtime_without_a_profile_explains_nothing(runtime: dict[str, Any], before: Path, tmp_path: Path) -> None:
    recorded("tie_fc_i8_0.npz", runtime).save(tmp_path / "after.npz")
    assert diff_goldens(MODEL, before, tmp_path / "after.npz").verdict == Verdict.DIFFERS
    found = verify(MODEL, tmp_path / "after.npz", profile="tflite-2.14-ref")
    assert (found.verdict, found.own) == (Verdict.DIFFERS, "")


def test_verify_under_another_release_says_which_formula_changed(before: Path) -> None:
    assert tflq("verify", MODEL, "--golden", before).exit_code == 0
    result = tflq("verify", MODEL, "--golden", before, "--profile", "litert-2.3-ref")
    assert (result.exit_code, result.stdout.split()[0]) == (6, "EXPLAINED")
    assert (
        "tflite-2.14-ref, the profile of tflite-runtime-ref, reproduces every bit; litert-ref differs." in result.stdout
    )
    document = json.loads(tflq("verify", MODEL, "--golden", before, "--profile", "litert-2.3-ref", "--json").stdout)
    validate(document, "verify")
    assert document["explained"]["profile"] == "tflite-2.14-ref"


def test_a_baseline_accepts_what_is_explained(before: Path, tmp_path: Path) -> None:
    words = ("verify", MODEL, "--golden", before, "--profile", "litert-2.3-ref", "--baseline", tmp_path / "known.json")
    assert tflq(*words, "--accept-until", "2999-12-31", "--reason", "until 2.3").exit_code == 0
    result = tflq(*words)
    assert (result.exit_code, result.stdout.split()[0]) == (0, "ACCEPTED")


def test_several_models_name_the_explained_and_the_accepted_ones(before: Path, after: Path, tmp_path: Path) -> None:
    for name, golden in (("a", before), ("b", after)):
        (tmp_path / f"{name}.tflite").write_bytes(MODEL.read_bytes())
        (tmp_path / f"g-{name}.npz").write_bytes(golden.read_bytes())
    models = (tmp_path / "a.tflite", tmp_path / "b.tflite")
    words = ("verify", *models, "--golden", tmp_path / "g-{stem}.npz", "--profile", "litert-2.3-ref")
    result = tflq(*words)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (6, "EXPLAINED 2 models: 1 explained, 1 same")
    accepting = (*words, "--baseline", tmp_path / "known.json")
    assert tflq(*accepting, "--accept-until", "2999-12-31", "--reason", "until 2.3").exit_code == 0
    result = tflq(*accepting, "--json")
    document = json.loads(result.stdout)
    jsonschema_of_summary(document)
    assert (result.exit_code, document["exit_code"]) == (0, 0)
    assert [model["verdict"] for model in document["models"]] == ["accepted", "same"]


def jsonschema_of_summary(document: dict[str, Any]) -> None:
    """Validate the summary but for its reports, whose schema stands in a file of its own."""
    for model in document["models"]:
        validate(model["report"], "verify")
    shallow = {**document, "models": [{**model, "report": None} for model in document["models"]]}
    validate(shallow, "verify-summary")


@pytest.mark.parametrize(
    ("one", "other", "op", "types", "found"),
    [
        ("tflite-2.12-ref", "tflite-2.13-ref", "MEAN", {"int8"}, 2),
        ("tflite-2.12-ref", "tflite-2.13-ref", "MEAN", {"float32"}, 0),
        ("tflite-2.12-ref", "tflite-2.13-opt", "MEAN", {"int8"}, 0),  # two resolvers
        ("tflite-2.12-ref", "tflm", "MEAN", {"int8"}, 0),
        ("tflite-2.11-opt", "tflite-2.13-opt", "ADD", {"int8"}, 0),  # changed, and changed back
        ("litert-ref", "litert-ref", "FULLY_CONNECTED", {"int8"}, 0),
    ],
)
def test_changes_between_two_profiles(one: str, other: str, op: str, types: set[str], found: int) -> None:
    assert len(changes_between(one, other, op, types)) == found
    assert len(changes_between(other, one, op, types)) == found
