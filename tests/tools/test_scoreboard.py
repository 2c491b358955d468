"""The scoreboard: records are digests of outputs; shares, groups and letters follow from them; pages are up to date."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import conformance_records as kept
import pytest
import scoreboard
import scoreboard_picture

from support.commands import tflq
from tflq.devices.suites.run import SuiteOrder, make_suite

A, B = "0" * 8, "1" * 8


def record(name: str, *digests: str) -> kept.Record:
    return kept.Record(name, name, "machine", 1.0, 0, {"ADD": digests})


@pytest.mark.slow
def test_the_pages_are_up_to_date() -> None:
    found = kept.records()
    assert scoreboard.page(found) == scoreboard.PAGE.read_text(encoding="utf-8")
    assert scoreboard.picture(found) == scoreboard.PICTURE.read_text(encoding="utf-8")
    text = scoreboard.TARGETS.read_text(encoding="utf-8")
    assert scoreboard.targets(found, text) == text
    assert len(scoreboard.FIGURES.findall(text)) >= 10


def test_shares_count_only_what_both_computed() -> None:
    assert kept.shared([A, A, "refused", A], [A, B, A, "ended"]) == (1, 2)
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


def test_a_group_agrees_in_all_members_and_computes_about_the_same() -> None:
    same = [*[A] * 19, "refused"]
    found = [
        record("LiteRT 2.1, reference", *same),
        record("LiteRT 2.0, reference", *[A] * 20),
        record("LiteRT 1.9, reference", *[A] * 19, B),  # agrees with the first only
        record("Micro", *[A] * 9, *["refused"] * 11),  # agrees, and computes half
    ]
    groups = scoreboard.groups_of(found)
    assert [group.name for group in groups] == ["LiteRT 2.0 to 2.1, reference", "LiteRT 1.9, reference", "Micro"]
    assert groups[0].digests() == [A] * 20


def test_a_square_shows_agreement_by_colour_and_coverage_by_size() -> None:
    assert [scoreboard_picture.step(s) for s in ((4, 4, 8), (199, 200, 200), (1, 2, 2), (0, 0, 2))] == [
        "s5",
        "s4",
        "s1",
        "",
    ]
    picture = ElementTree.fromstring(scoreboard_picture.draw(["a & b"], [[(4, 4, 8)]], ["ADD"], [[(0, 0, 2)]]))
    squares = [e for e in picture.iter("{http://www.w3.org/2000/svg}rect") if e.get("fill") == "var(--s5)"]
    assert {float(e.get("width", "0")) for e in squares} == {13.0, 10.5}  # the legend's, and one of half the cases
    assert "a & b  1" in [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_figures_of_targets_are_those_of_the_records() -> None:
    found = [
        replace(record("r", A, B, "refused", "ended"), accepted=2, seconds=8.6),
        record(scoreboard.BASE, A, A, A, A),
    ]
    row = "| [R 1](scoreboard.md#r) | 7 | 7 | 7 | 7 | 7 | 7 s | cause |"
    assert (
        scoreboard.targets(found, f"x\n{row}\n") == "x\n| [R 1](scoreboard.md#r) | 1 | 1 | 1 | 1 | 2 | 9 s | cause |\n"
    )


def ran(suite: Path, work: Path) -> dict[str, Any]:
    run = ["conform", "run", suite, "--target", "profile:litert-ref", "--work", work, "--json"]
    document: dict[str, Any] = json.loads(tflq(*run).stdout)
    return document


def test_a_record_is_of_a_runs_outputs(tmp_path: Path) -> None:
    suite, work = tmp_path / "suite.npz", tmp_path / "work"
    make_suite(str(suite), SuiteOrder(every=900))
    document = ran(suite, work)
    document["cases"][0] |= {"result": "ended", "outputs": None}
    kept.write(document, work, "one", "One", "machine", tmp_path / "records")
    (tmp_path / "records" / "order.txt").write_text("one\n", encoding="utf-8")
    (one,) = kept.records(tmp_path / "records")
    runnable = [case for case in document["cases"] if not case["must_be_refused"]]
    assert len(one.digests()) == len(runnable) > 3
    assert one.digests().count("ended") == 1
    assert sorted(d for d in one.digests() if d != "ended") == sorted(c["outputs"][:8] for c in runnable[1:])
    assert 0 <= one.seconds < 600
    second = json.loads(json.dumps(document))
    second["cases"][2]["outputs"] = "0" * 32
    kept.write(document, work, "one", "One", "machine", tmp_path / "records", [document, second])
    (again,) = kept.records(tmp_path / "records")
    assert sorted(set(again.digests()) - set(one.digests())) == ["undefined"]
    assert again.digests().count("undefined") == 1
    with pytest.raises(SystemExit, match="only a part"):
        kept.write({**document, "shard": [1, 2]}, work, "two", "Two", "machine", tmp_path / "records")


def test_a_run_of_the_rest_makes_an_older_record_whole(tmp_path: Path) -> None:
    suite, rest, folder = tmp_path / "suite.npz", tmp_path / "rest.npz", tmp_path / "records"
    make_suite(str(suite), SuiteOrder(every=900))
    document = ran(suite, tmp_path / "work")
    kept.write(document, tmp_path / "work", "one", "One", "machine", folder)
    whole = json.loads((folder / "one.json").read_text(encoding="utf-8"))
    older = {**document, "suite": "f" * 64, "cases": document["cases"][::2]}
    kept.write(older, tmp_path / "work", "one", "One", "machine", folder)
    count = kept.rest_of(str(suite), "one", str(rest), folder)
    assert count == sum(not case["must_be_refused"] for case in document["cases"][1::2]) > 3
    found = ran(rest, tmp_path / "second")
    assert len(found["cases"]) == count
    with pytest.raises(SystemExit, match="1 cases are in neither"):
        kept.join({**found, "cases": found["cases"][1:]}, tmp_path / "second", "one", str(suite), folder)
    kept.join(found, tmp_path / "second", "one", str(suite), folder)
    joined = json.loads((folder / "one.json").read_text(encoding="utf-8"))
    assert {**joined, "seconds": 0} == {**whole, "seconds": 0}


def copied(folder: Path) -> Path:
    (folder / "cases").mkdir()
    for path in kept.RECORDS.rglob("*.*"):
        (folder / path.relative_to(kept.RECORDS)).write_bytes(path.read_bytes())
    return folder


def changed(path: Path, **facts: Any) -> Mapping[str, Any]:
    row: dict[str, Any] = {**json.loads(path.read_text(encoding="utf-8")), **facts}
    path.write_text(json.dumps(row), encoding="utf-8")
    return row


def test_a_record_of_an_older_suite_stays_comparable(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    before = {one.key: one for one in kept.records(folder)}["litert-2.3.0-opt"]
    path = folder / "litert-2.3.0-opt.json"
    row = json.loads(path.read_text(encoding="utf-8"))
    listed = json.loads(next((folder / "cases").iterdir()).read_text(encoding="utf-8"))
    ((types, names), *_) = listed["cases"]["ADD"].items()
    old = {**listed, "suite": "f" * 64, "cases": {"ADD": {types: " ".join(reversed(names.split()))}}}
    (folder / "cases" / f"{'f' * 16}.json").write_text(json.dumps(old), encoding="utf-8")
    words = row["results"]["ADD"].split()[: len(names.split())]
    changed(path, suite="f" * 64, results={"ADD": " ".join(reversed(words))})
    after = {one.key: one for one in kept.records(folder)}["litert-2.3.0-opt"]
    assert after.results["ADD"][: len(words)] == before.results["ADD"][: len(words)]
    assert set(after.digests()) == {*words, kept.ABSENT}
    assert "Ran an older suite, without some of the cases: LiteRT 2.3.0" in scoreboard.page(kept.records(folder))


def test_a_record_that_does_not_fit_its_suite_or_the_list_is_refused(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    path = folder / "litert-2.3.0-opt.json"
    text = path.read_text(encoding="utf-8")
    row = json.loads(text)
    changed(path, results={**row["results"], "ADD": "refused"})
    with pytest.raises(SystemExit, match="1 results of"):
        kept.records(folder)
    path.write_text(text, encoding="utf-8")
    (folder / "unlisted.json").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="does not list every record"):
        kept.records(folder)


@pytest.mark.slow
def test_the_record_of_the_reference_is_what_the_profile_computes(tmp_path: Path) -> None:
    suite, work = tmp_path / "suite.npz", tmp_path / "work"
    make_suite(str(suite), SuiteOrder(level="smoke"))
    document = ran(suite, work)
    made = kept.recorded(document, "key", "name", "machine", 1, ())
    real = json.loads((kept.RECORDS / "litert-2.3.0-ref.json").read_text(encoding="utf-8"))
    computed = dict(made["results"]), dict(real["results"])
    for results in computed:
        results.pop("ELU")  # which the resolver of the reference kernels does not register
    assert computed[0] == computed[1]
    assert made["suite"] == real["suite"]
