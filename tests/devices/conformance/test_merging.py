"""Parts of a suite: run in parts or made in parts, they merge into the verdict on the whole; nothing else merges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tflq as package
from support.commands import conform
from tflq.devices.suites.run import SuiteOrder, make_suite

TARGET = "profile:tflm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite, its whole document, and documents of three parts."""
    place = tmp_path_factory.mktemp("parts")
    make_suite(str(place / "suite.npz"), SuiteOrder(every=300))
    for name, shard in (("whole", "1/1"), *((f"part{i}", f"{i}/3") for i in (1, 2, 3))):
        done = conform("run", place / "suite.npz", "--target", TARGET, "--shard", shard, "--json")
        (place / f"{name}.json").write_text(done.stdout)
    return place


def parts(folder: Path, *numbers: int) -> list[Path]:
    return [folder / f"part{number}.json" for number in numbers]


@pytest.mark.slow
def test_parts_that_are_run_give_the_verdict_on_the_whole(folder: Path, tmp_path: Path) -> None:
    done = conform(
        "merge", *parts(folder, 2, 3, 1), "--json", "--sarif", tmp_path / "s.json", "--junit", tmp_path / "j.xml"
    )
    whole, merged = json.loads((folder / "whole.json").read_text()), json.loads(done.stdout)
    names = ("counts", "compared", "verdict", "shard", "suite")
    assert {name: merged[name] for name in names} == {name: whole[name] for name in names}
    facts = ("id", "result", "reason", "difference", "mark")
    assert [[c[f] for f in facts] for c in merged["cases"]] == [[c[f] for f in facts] for c in whole["cases"]]
    known = tmp_path / "known.json"
    accepted = ("--baseline", known, "--accept-until", "2999-12-31", "--reason", "x")
    assert conform("run", folder / "suite.npz", "--target", TARGET, *accepted).exit_code == 0
    text = conform("merge", *parts(folder, 1, 2, 3), "--baseline", known)
    assert text.exit_code == 0, text.output  # cases have the keys that a run of the whole gives them
    assert "0 new" in text.stderr


@pytest.mark.slow
def test_parts_that_are_made_give_the_verdict_on_the_whole(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npz"
    make_suite(str(whole), SuiteOrder(every=900))
    count = 0
    for number in (1, 2):
        suite = tmp_path / f"{number}.npz"
        make_suite(str(suite), SuiteOrder(every=900, shard=(number, 2)))
        done = conform("run", suite, "--target", TARGET, "--json")
        (tmp_path / f"{number}.json").write_text(done.stdout)
        count += len(json.loads(done.stdout)["cases"])
        again = conform("run", suite, "--target", TARGET, "--shard", "1/2")
        assert (again.exit_code, f"is part {number}/2 itself" in again.stderr) == (2, True)
    merged = json.loads(conform("merge", tmp_path / "1.json", tmp_path / "2.json", "--json").stdout)
    whole_run = json.loads(conform("run", whole, "--target", TARGET, "--json").stdout)
    assert count == len(merged["cases"]) == len(whole_run["cases"])
    assert [c["id"] for c in merged["cases"]] == [c["id"] for c in whole_run["cases"]]
    assert merged["counts"] == whole_run["counts"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "words"), [((1, 3), "3 parts; missing: 2/3"), ((1, 2, 2), "another document holds"), ((3,), "1/3, 2/3")]
)
def test_parts_that_are_not_the_whole_are_refused(numbers: tuple[int, ...], words: str, folder: Path) -> None:
    done = conform("merge", *parts(folder, *numbers))
    assert (done.exit_code, words in done.stderr) == (2, True), done.output


def changed(folder: Path, place: Path, change: dict[str, Any]) -> Path:
    document = json.loads((folder / "part2.json").read_text())
    place.write_text(json.dumps(document | change))
    return place


@pytest.mark.parametrize(
    "change",
    [
        {"target": "profile:other"},
        {"profile": "tflm"},
        {"suite": "0" * 64},
        {"shard": [2, 4]},
        {"made": {"seed": 1, "version": package.__version__}},
        {"made": {"seed": 0, "version": "0.0"}},
        {"shard": [0, 3]},
        {"shard": "2/3"},
        {"schema": "tflq/run/1"},
        {"cases": [7]},
        {"cases": [{}]},
        {"left": -1},
        {"level": "none"},
    ],
)
def test_documents_that_do_not_belong_are_refused(change: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    first, _, third = parts(folder, 1, 2, 3)
    done = conform("merge", first, changed(folder, tmp_path / "odd.json", change), third)
    assert (done.exit_code, done.stdout) == (2, ""), done.output


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "tflq/conform/1"}'])
def test_files_that_are_no_documents_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(text)
    assert conform("merge", tmp_path / "odd.json").exit_code == 2
    assert conform("merge", tmp_path / "none.json").exit_code == 2


def test_an_interrupted_part_never_passes(folder: Path, tmp_path: Path) -> None:
    odd = changed(folder, tmp_path / "odd.json", {"left": 3})
    first, _, third = parts(folder, 1, 2, 3)
    done = conform("merge", first, odd, third, "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (130, "interrupted")
