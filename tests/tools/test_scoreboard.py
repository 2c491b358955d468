"""The scoreboard: records are digests of outputs, shares and letters follow from them, the page is up to date."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import scoreboard
from click.testing import CliRunner

from support import suites
from tflq.devices.conformance.session import Order, make_suite
from tflq.face.cli.main import cli

A, B = "0" * 8, "1" * 8


def test_the_page_is_up_to_date() -> None:
    assert scoreboard.page(scoreboard.records()) == scoreboard.PAGE.read_text(encoding="utf-8")


def test_shares_count_only_what_both_computed() -> None:
    assert scoreboard.shared([A, A, "refused", A], [A, B, A, "ended"]) == (1, 2)
    assert [scoreboard.percent(*pair) for pair in ((199, 200), (200, 200), (0, 0))] == ["99", "100", ""]


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [
        ([[A, A], [A, B], [A, A]], "ABA"),
        ([[A, A], [A, "refused"], ["refused", "ended"]], "Aa–"),
        ([[A, "refused"], ["refused", A]], "ab"),  # nothing in common is no agreement
        ([[A, B], [A, "refused"], [A, A]], "AaB"),
    ],
)
def test_letters(vectors: list[list[str]], expected: str) -> None:
    assert "".join(scoreboard.letters(vectors)) == expected


def test_a_record_is_of_a_runs_outputs(tmp_path: Path) -> None:
    suite, work = tmp_path / "suite.npz", tmp_path / "work"
    make_suite(str(suite), Order(every=300))
    run = ["conform", "run", suite, "--target", "profile:litert-ref", "--work", work, "--json"]
    document = json.loads(CliRunner().invoke(cli, list(map(str, run))).stdout)
    made = scoreboard.recorded(document, work, "key", "name", "machine")
    kept = [case for case in document["cases"] if not case["must_be_refused"]]
    assert sum(len(words.split()) for words in made["results"].values()) == len(kept) > 3
    case = next(case for case in kept if case["result"] == "passes")
    before = scoreboard.digest(work / case["id"])
    output = next((work / case["id"]).glob("out*.bin"))
    output.write_bytes(output.read_bytes()[:-1] + b"\x55")
    assert before in made["results"][case["op"]].split()
    assert scoreboard.digest(work / case["id"]) != before


def test_records_of_another_suite_are_refused(tmp_path: Path) -> None:
    for path in scoreboard.RECORDS.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert len(scoreboard.records(tmp_path)) == len(scoreboard.records())
    path = tmp_path / "iree-3.13.0.json"
    path.write_text(re.sub(r'"suite": "\w', '"suite": "x', path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(SystemExit, match="different suites"):
        scoreboard.records(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        scoreboard.records(tmp_path)


#: Operators whose cases changed after the records were made, when the suite came to cover geometries.
DRAWN_ANEW = {"AVERAGE_POOL_2D", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "MAX_POOL_2D", "TRANSPOSE_CONV"}


@pytest.mark.slow
def test_the_record_of_the_reference_is_what_the_profile_computes(tmp_path: Path) -> None:
    suite, work = tmp_path / "suite.npz", tmp_path / "work"
    make_suite(str(suite), Order(level="smoke"))
    run = ["conform", "run", suite, "--target", "profile:litert-ref", "--work", work, "--json"]
    document = json.loads(CliRunner().invoke(cli, list(map(str, run))).stdout)
    made = scoreboard.recorded(document, work, "key", "name", "machine")
    real = json.loads((suites.ROOT / "golden/conformance/litert-2.3.0-ref.json").read_text(encoding="utf-8"))
    assert set(real["results"]) == set(made["results"])
    assert {op for op, digests in real["results"].items() if made["results"][op] != digests} == DRAWN_ANEW
