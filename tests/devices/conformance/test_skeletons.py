"""The skeleton of a target passes as it is, in every language: it runs one operator and refuses the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import tflq as package
from support.commands import conform
from tflq.devices.suites import jobs
from tflq.devices.suites import target as targets
from tflq.devices.suites.make import read_suite, write_suite
from tflq.devices.suites.run import SuiteOrder, make_suite
from tflq.errors import FileAccessError, OptionError, UnknownNameError
from tflq.model.storage.arrays import opened

#: Operators of the suite: the one that the skeleton runs, and some that it refuses.
KEPT = ("RESHAPE", "ADD", "CONV_2D")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of RESHAPE, of other operators, and of models that must be refused."""
    place = tmp_path_factory.mktemp("suite")
    made = make_suite(str(place / "whole.npz"), SuiteOrder(level="smoke", shard=(1, 12)))
    runnable = [[case for case in made.suite.cases if case.op == op and not case.is_refused] for op in KEPT]
    refused = [case for case in made.suite.cases if case.is_refused]
    assert all(runnable)
    assert refused
    chosen = sorted((case for group in (*runnable, refused) for case in group[:12]), key=lambda case: case.id)
    with opened(str(place / "whole.npz")) as archive:
        write_suite(str(place / "suite.npz"), replace(read_suite(archive), cases=tuple(chosen)), made.data)
    return place / "suite.npz"


@pytest.mark.parametrize("language", ["python", "c", "node"])
def test_it_passes_as_it_is(language: str, suite: Path, tmp_path: Path) -> None:
    program = {"python": sys.executable, "c": "cc", "node": "node"}[language]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    made = package.new_target("my-npu_2", language, tmp_path)
    assert Path(made.path).parent == tmp_path
    if made.build:
        done = subprocess.run(f"{made.build} -Wall -Wextra -Werror", shell=True, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    command = made.command.replace("python ", f"{sys.executable} ", 1)
    found = package.conform(suite, command)
    results = {(one.case.op, one.case.is_refused, one.result.value) for one in found.cases}
    assert found.verdict.value == "passes", [one.reason for one in found.failing]
    assert ("RESHAPE", False, "passes") in results
    assert ("ADD", False, "refused") in results
    assert {result for _, must, result in results if must} == {"passes"}
    assert "my_target" not in Path(made.path).read_text()


def test_a_wrong_skeleton_fails(suite: Path, tmp_path: Path) -> None:
    made = package.new_target("wrong", "python", tmp_path)
    text = Path(made.path).read_text()
    assert text.count("return [data]") == 1
    Path(made.path).write_text(text.replace("return [data]", "return [data[::-1]]"))
    assert package.conform(suite, f"{sys.executable} {made.path}").verdict.value == "fails"


STATING = """
import pathlib, sys
folder = pathlib.Path(sys.argv[-1])
(folder / "operators.txt").write_text("{stated}")
with open(folder / "asked.txt", "a") as asked:
    asked.write((folder / "cases.txt").read_text())
for name in (folder / "cases.txt").read_text().split():
    (folder / name / "refused.txt").write_text("not today")
"""


def test_a_target_that_states_its_operators_is_asked_about_these_only(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "_FEW", 1)
    program, work = tmp_path / "npu.py", tmp_path / "work"
    program.write_text(STATING.format(stated="add, RESHAPE"))
    found = package.conform(suite, f"{sys.executable} {program}", work=work)
    asked = (work / "asked.txt").read_text().split()
    assert len(asked) == len(set(asked)) > 5
    first, *rest = asked  # the first is asked before the target states anything
    assert {name.partition("-")[2] for name in rest} == {"add", "reshape"}
    reasons = {(one.case.op, one.reason) for one in found.cases if one.case.id != first}
    assert ("CONV_2D", jobs.UNSTATED) in reasons
    assert ("ADD", "not today") in reasons
    assert len(found.cases) > len(asked)
    assert not any(one.fails for one in found.cases)
    assert found.verdict.value == "nothing compared"
    unpacked = {path.parent.name for path in work.glob("*/model.tflite")}
    assert unpacked == set(asked)


def test_an_operator_that_does_not_exist_is_no_statement(suite: Path, tmp_path: Path) -> None:
    program = tmp_path / "npu.py"
    program.write_text(STATING.format(stated="CONV2D"))
    with pytest.raises(UnknownNameError, match="did you mean CONV_2D"):
        package.conform(suite, f"{sys.executable} {program}")


def test_cases_of_some_operators_are_run_and_the_rest_is_no_part_of_it(suite: Path, tmp_path: Path) -> None:
    found = package.conform(suite, "profile:litert-ref", ops=["add"])
    assert ({one.case.op for one in found.cases}, found.ops) == ({"ADD"}, ("ADD",))
    words = ("run", suite, "--target", "profile:litert-ref", "--ops", "ADD,reshape")
    assert "only cases of ADD, RESHAPE" in conform(*words).stdout
    document = conform(*words, "--json").stdout
    assert json.loads(document)["ops"] == ["ADD", "RESHAPE"]
    (tmp_path / "run.json").write_text(document)
    assert package.claim_conformance(tmp_path / "run.json").met == ""
    for names, words in ((["CONV"], "no operator 'CONV'"), (["SVDF"], "no operator of the suite at this level 'SVDF'")):
        with pytest.raises(UnknownNameError, match=words):
            package.conform(suite, "profile:litert-ref", ops=names)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    old = tmp_path / "npu.py"
    old.write_text("precious")
    done = conform("new-target", "npu", "-o", tmp_path)
    assert (done.exit_code, "exists already" in done.stderr, old.read_text()) == (2, True, "precious")
    with pytest.raises(FileAccessError):
        package.new_target("npu", "python", tmp_path)
    assert conform("new-target", "npu", "-o", tmp_path, "--force").exit_code == 0
    assert "precious" not in old.read_text()
    assert conform("new-target", "npu", "-o", tmp_path / "nowhere").exit_code == 2


@pytest.mark.parametrize("name", ["", "../up", "a/b", "1st", "a b", "a;b", "-x", "x" * 65, "\0"])
def test_a_name_that_is_no_word_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        package.new_target(name, "python", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cobol"):
        package.new_target("npu", "cobol", tmp_path)


def test_the_command_gives_what_the_function_returns(tmp_path: Path) -> None:
    document = json.loads(conform("new-target", "npu", "--language", "c", "-o", tmp_path, "--json").stdout)
    made = package.new_target("npu", "c", tmp_path, replace=True)
    assert document["schema"] == "tflq/conform-new-target/1"
    assert (document["path"], document["build"], document["command"]) == (made.path, made.build, made.command)
