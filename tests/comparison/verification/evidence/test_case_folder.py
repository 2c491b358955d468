"""A case of a conformance run is a model and a dump in one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.commands import tflq
from tflq.devices.suites.run import SuiteOrder, make_suite, run_suite
from tflq.devices.suites.target import target_of


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("work")
    make_suite(str(place / "suite.npz"), SuiteOrder(profile="tflite-2.14-ref", level="smoke", every=120))
    run_suite(str(place / "suite.npz"), target_of("profile:litert-opt"), work=str(place / "work"))
    return place / "work"


def differing(work: Path) -> Path:
    done = tflq("conform", "run", work.parent / "suite.npz", "--target", "profile:litert-opt", "--work", work, "--json")
    return work / next(c["id"] for c in json.loads(done.stdout)["cases"] if c["result"] == "differs")


@pytest.mark.slow
def test_a_case_is_explained_under_the_suites_profile(work: Path) -> None:
    case = differing(work)
    done = tflq("explain", case, "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["profile"]) == (1, "tflite-2.14-ref"), done.output
    same = tflq("explain", case, "--profile", "litert-opt")
    assert same.exit_code == 0, same.output
    assert tflq("explain", f"{case}/model.tflite", "--dump", case).exit_code in (0, 1)


@pytest.mark.slow
def test_a_case_without_outputs_is_refused(work: Path, tmp_path: Path) -> None:
    carried = tmp_path / "carried"
    assert tflq("conform", "pack", work.parent / "suite.npz", "-o", carried).exit_code == 0
    case = carried / differing(work).name
    done = tflq("explain", case)
    assert (done.exit_code, "holds no outputs of a target" in done.stderr) == (2, True), done.output
    (case / "refused.txt").write_text("no")
    assert "a refusal" in tflq("explain", case).stderr
    (case / "out0_7.bin").write_bytes(b"1")
    assert "the model lacks" in tflq("explain", case).stderr
    (carried / "record.json").write_text("{}")
    assert tflq("explain", case).exit_code == 2
