"""Certificates: what one states holds for its model, and nothing that is changed in one survives a check."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tflq
from support import commands, suites
from support.commands import validate
from tflq.engine.profiles import by_name
from tflq.errors import FileAccessError, InputError, UnknownNameError
from tflq.proof import Certificate, check_certificate, prove, read_certificate
from tflq.proof.certificate import profile_digest

DIGITS = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
#: All operators of DIGITS are equal under the first two; `litert-ref` differs in FULLY_CONNECTED.
NAMES = ("tflite-2.14-ref", "tflm", "litert-ref")
UNSIGNED = next((suites.ROOT / "golden" / "singleop" / "models").glob("*conv*u8_0.tflite"))
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document() -> str:
    return prove(DIGITS, NAMES).certificate().text()


def problems(document: Document, model: object = DIGITS) -> tuple[str, ...]:
    """Return the problems of a changed document whose digest was recomputed."""
    signed = Certificate({**document, "digest": Certificate(document).digest})
    return check_certificate(model, signed).problems  # type: ignore[arg-type]


def test_a_certificate_follows_its_schema_and_holds(document: str, tmp_path: Path) -> None:
    made = json.loads(document)
    validate(made, "certificate")
    assert [profile["name"] for profile in made["profiles"]] == list(NAMES)
    assert made["model"]["sha256"] == prove(DIGITS, NAMES[:2]).model.sha256
    (tmp_path / "c.json").write_text(document, encoding="utf-8")
    read = read_certificate(tmp_path / "c.json")
    check = check_certificate(DIGITS, read)
    assert (check.holds, check.problems, read.verdict) == (True, (), "differs")
    assert check.proof is not None
    assert check.proof.certificate().text() == document


def test_the_verb_writes_and_checks(tmp_path: Path) -> None:
    kept, page = tmp_path / "c.json", tmp_path / "c.html"
    made = commands.tflq("prove", DIGITS, "--between", *NAMES[:2], "-o", kept, "--html", page)
    assert made.exit_code == 0, made.output
    assert "tflm" in page.read_text(encoding="utf-8")
    assert commands.tflq("prove", DIGITS, "--between", *NAMES[:2], "-o", kept).exit_code == 2  # it exists
    held = commands.tflq("prove", DIGITS, "--check", kept)
    assert (held.exit_code, "holds" in held.stdout) == (0, True), held.output
    found = commands.tflq("prove", DIGITS, "--check", kept, "--json")
    validate(json.loads(found.stdout), "certificate-check")
    other = commands.tflq("prove", UNSIGNED, "--check", kept)
    assert (other.exit_code, "another model" in other.stdout) == (1, True)
    assert commands.tflq("prove", DIGITS, "--check", kept, "--between", "litert-ref", "tflm").exit_code == 2


def test_profiles_that_refuse_the_model_are_checked_too() -> None:
    made = json.loads(prove(UNSIGNED, ["litert-ref", "tflite-2.14-ref", "tflm", "tflm-cmsis-nn"]).certificate().text())
    assert made["verdict"] == "not decided"
    assert problems(made, UNSIGNED) == ()
    listed = prove(UNSIGNED, "all").certificate()
    assert "tflm" in listed.refusing
    assert check_certificate(UNSIGNED, listed).holds
    claimed = json.loads(listed.text())
    claimed["not_covered"].append({"name": "spec", "reason": "hand-written"})  # which takes it
    assert any("spec" in problem for problem in problems(claimed, UNSIGNED))


def test_a_changed_byte_of_the_model_voids_it(document: str) -> None:
    data = bytearray(DIGITS.read_bytes())
    data[-1] ^= 1
    (problem,) = problems(json.loads(document), bytes(data))
    assert problem.startswith("another model: SHA-256 ")


def of_operator(key: str, value: object) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        place = next(o for o in document["operators"] if o["op"] == "FULLY_CONNECTED")
        assert place[key] != value
        place[key] = value

    return change


def without(key: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document[key] = document[key][:-1]

    return change


def whole(document: Document) -> None:
    document["coverage"][0]["outside"] = []


def other_version(document: Document) -> None:
    document["profiles"][0]["version"] = "9.9"


def other_profile(document: Document) -> None:
    document["profiles"][0]["sha256"] = "0" * 64


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (of_operator("verdict", "equal"), "verdict: the certificate has equal, the proof gives differs"),
        (of_operator("groups", [list(NAMES)]), "groups"),
        (of_operator("accumulators", [0, 1]), "accumulators"),
        (lambda d: d.update(verdict="equal"), "verdict: the certificate has equal, the proof gives differs"),
        (without("operators"), "operators: the certificate has 19, the proof gives 20"),
        (without("coverage"), "coverage"),
        (whole, "coverage"),
        (other_version, "profiles tflite-2.14-ref: version: the certificate has 9.9"),
        (other_profile, "profile tflite-2.14-ref is defined otherwise"),
        (lambda d: d["operators"].__setitem__(0, "nothing"), "the certificate has nothing"),
        (lambda d: d["model"].update(size=1), "model: size: the certificate has 1"),
        (lambda d: d.update(approved="by all"), "approved: a certificate has no such entry"),
        (lambda d: d["operators"][3].update(note="x"), "note: a certificate has no such entry"),
        (lambda d: d["operators"][3].pop("groups"), "groups: is missing"),
    ],
)
def test_nothing_written_by_hand_survives(
    document: str, change: Callable[[Document], None], expected: str, tmp_path: Path
) -> None:
    made = json.loads(document)
    change(made)
    assert any(expected in problem for problem in problems(made)), problems(made)
    kept = tmp_path / "c.json"
    kept.write_text(json.dumps(made), encoding="utf-8")
    assert commands.tflq("prove", DIGITS, "--check", kept).exit_code == 1


def test_a_profile_of_a_file_is_hashed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("schema: tflq/profile/1\nbase: tflm\n", encoding="utf-8")
    kept = prove(DIGITS, [NAMES[0], str(mine)]).certificate()
    assert check_certificate(DIGITS, kept).holds
    mine.write_text("schema: tflq/profile/1\nbase: litert-ref\n", encoding="utf-8")
    (problem,) = check_certificate(DIGITS, kept).problems
    assert "is defined otherwise" in problem
    mine.unlink()
    with pytest.raises(FileAccessError):
        check_certificate(DIGITS, kept)


def test_digests_differ_between_profiles() -> None:
    names = ("litert-ref", "litert-opt", "litert-ref+single-rounding", "tflm", "tflm-cmsis-nn", "litert-2.4-ref")
    assert len({profile_digest(by_name(name)) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not readable JSON"),
        ("{", "not readable JSON"),
        ("[]", "is no certificate"),
        ("{}", "is no certificate"),
        ('{"schema": "tflq/prove/2"}', "is no certificate"),
        ('{"schema": "tflq/certificate/9"}', "of another version"),
        ('{"schema": "tflq/certificate/1"}', "no whole certificate: tflq"),
        ("[" * 100_000, "not readable JSON"),
        ('"' + "x" * (17 << 20) + '"', "too large"),
    ],
)
def test_hostile_files_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=reason):
        read_certificate(path)
    assert commands.tflq("prove", DIGITS, "--check", path).exit_code == 2


def truncated(document: str) -> str:
    return document[: len(document) // 2]


def renamed(document: str) -> str:
    return document.replace('"name": "tflm"', '"name": "nobody"')


def unnamed(document: str) -> str:
    made = json.loads(document)
    made["profiles"][0] = 3
    return json.dumps(made)


def unsigned(document: str) -> str:
    made = json.loads(document)
    made["signature"] = {"a": 1}
    return json.dumps(made)


@pytest.mark.parametrize("change", [truncated, renamed, unnamed, unsigned])
def test_hostile_changes_of_a_true_one_are_refused(document: str, change: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(change(document), encoding="utf-8")
    with pytest.raises((InputError, UnknownNameError)):
        check_certificate(DIGITS, read_certificate(path))
    assert commands.tflq("prove", DIGITS, "--check", path).exit_code == 2
    assert commands.tflq("prove", DIGITS, "--check", path.with_name("none.json")).exit_code == 2


@pytest.mark.slow
def test_names_of_the_package() -> None:
    assert inspect.unwrap(tflq.read_certificate) is read_certificate
    assert inspect.unwrap(tflq.check_certificate) is check_certificate
    assert tflq.prove(DIGITS, "all").word.value == "differs"


@pytest.mark.parametrize("key", ["tflq", "model"])
def test_what_no_proof_gives_is_held_by_the_digest(document: str, key: str) -> None:
    made = json.loads(document)
    made[key] = "99.0" if key == "tflq" else {**made["model"], "name": "other.tflite"}
    (problem,) = check_certificate(DIGITS, Certificate(made)).problems
    assert problem.startswith("it was changed after it was made")


def test_profiles_are_listed_once(document: str) -> None:
    made = json.loads(document)
    made["profiles"] *= 3000
    found = problems(made)
    assert [f"profile {name} is listed more than once" for name in sorted(NAMES)] == list(found)
