"""The skeleton of a target passes as it is, in every language: it runs one operator and refuses the rest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tflq as package
from tflq.devices.conformance.session import Order, make_suite
from tflq.devices.conformance.suite import read_suite, write_suite
from tflq.errors import FileAccessError, OptionError
from tflq.face.cli.main import cli
from tflq.model.storage.archive import opened

#: Operators of the suite: the one that the skeleton runs, and some that it refuses.
KEPT = ("RESHAPE", "ADD", "CONV_2D")


def tflq(*words: object) -> Result:
    return CliRunner().invoke(cli, ["conform", *map(str, words)])


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite of RESHAPE, of other operators, and of models that must be refused."""
    place = tmp_path_factory.mktemp("suite")
    made = make_suite(str(place / "whole.npz"), Order(level="smoke", shard=(1, 12)))
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


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    old = tmp_path / "npu.py"
    old.write_text("precious")
    done = tflq("new-target", "npu", "-o", tmp_path)
    assert (done.exit_code, "exists already" in done.stderr, old.read_text()) == (2, True, "precious")
    with pytest.raises(FileAccessError):
        package.new_target("npu", "python", tmp_path)
    assert tflq("new-target", "npu", "-o", tmp_path, "--force").exit_code == 0
    assert "precious" not in old.read_text()
    assert tflq("new-target", "npu", "-o", tmp_path / "nowhere").exit_code == 2


@pytest.mark.parametrize("name", ["", "../up", "a/b", "1st", "a b", "a;b", "-x", "x" * 65, "\0"])
def test_a_name_that_is_no_word_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError):
        package.new_target(name, "python", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cobol"):
        package.new_target("npu", "cobol", tmp_path)


def test_the_command_gives_what_the_function_returns(tmp_path: Path) -> None:
    document = json.loads(tflq("new-target", "npu", "--language", "c", "-o", tmp_path, "--json").stdout)
    made = package.new_target("npu", "c", tmp_path, replace=True)
    assert document["schema"] == "tflq/conform-new-target/1"
    assert (document["path"], document["build"], document["command"]) == (made.path, made.build, made.command)
