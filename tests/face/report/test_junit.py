"""Names of test cases in JUnit files: short, unique, and independent of names of tensors."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support import suites
from support.commands import tflq
from tflq.engine.api.files import load, save
from tflq.face.report.issues import Issue
from tflq.face.report.several import issue_suite, numbered, stem
from tflq.model.ir import view, with_graph

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
#: Columns that a list of test cases has room for.
ROOM = 60


def names(path: Path) -> list[tuple[str, str]]:
    return [(c.get("classname", ""), c.get("name", "")) for c in ElementTree.parse(path).getroot().iter("testcase")]


def test_cases_of_verify_have_the_model_and_the_operator(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    result = tflq("verify", MODEL, "--profile", "litert-opt", "--junit", tmp_path / "v.xml")
    assert result.exit_code == 6
    found = names(tmp_path / "v.xml")
    operators = view(load(MODEL)).ops
    assert found == [("digits_mobilenet_int8", f"{o.index:04d} {o.builtin}") for o in operators]
    assert "tensor 37: functional_1/batch_normalization_3_1" in (tmp_path / "v.xml").read_text()  # the failure has it


@pytest.mark.parametrize("name", ["", "x" * 5000, "\x1b[2J\n", '<&">', "same"])
def test_names_of_tensors_change_no_case(name: str, tmp_path: Path) -> None:
    from dataclasses import replace

    model = load(MODEL)
    graph = view(model)
    renamed = replace(graph.record, tensors=tuple(replace(t, name=name) for t in graph.tensors))
    save(with_graph(model, renamed), tmp_path / "m.tflite")
    shutil.copy(MODEL, tmp_path / "n.tflite")
    for stem_, file in (("m", "a.xml"), ("n", "b.xml")):
        tflq("lint", tmp_path / f"{stem_}.tflite", "--portable", "--junit", tmp_path / file)
    first, second = names(tmp_path / "a.xml"), names(tmp_path / "b.xml")
    assert [case for _, case in first] == [case for _, case in second]
    assert max(map(len, (case for _, case in first))) < ROOM
    assert Counter(first).most_common(1)[0][1] == 1


def test_models_of_one_name_are_distinguished_by_their_paths(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(MODEL, tmp_path / folder / "m.tflite")
    words = [tmp_path / "a" / "m.tflite", tmp_path / "b" / "m.tflite", tmp_path / "missing.tflite"]
    assert tflq("lint", *words, "--portable", "--junit", tmp_path / "l.xml").exit_code == 2
    found = names(tmp_path / "l.xml")
    assert {classname for classname, _ in found} == {f"{tmp_path}/a/m", f"{tmp_path}/b/m", "missing"}
    assert Counter(found).most_common(1)[0][1] == 1


def test_equal_complaints_are_numbered() -> None:
    one = Issue("k", "rule", "summary", "error", "message \x00", "m.tflite", "0/1 ADD", "findings")
    suite = issue_suite("lint", "m.tflite", [one, one])
    assert [case.get("name") for case in suite.iter("testcase")] == ["rule 0/1 ADD", "rule 0/1 ADD (2)"]
    assert numbered(["a", "a (2)", "a", "a"]) == ["a", "a (2)", "a (3)", "a (4)"]
    assert numbered([]) == []


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/b/m_1.0.tflite", "m_1.0"), (".tflite", ".tflite"), ("", ""), ("g.litertlm:decode", "g.litertlm:decode")],
)
def test_the_class_is_the_name_of_the_file(path: str, name: str) -> None:
    assert stem(path) == name
