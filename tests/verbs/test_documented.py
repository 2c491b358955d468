"""Results in Python as documents and tables: `to_dict` and `to_pandas`."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tflq
from support import suites
from support.each import each
from tflq.errors import ArgumentError, OptionError, TflqError
from tflq.texts import Documented, Tabular

GOLDEN = suites.ROOT / "golden"
INT8, FLOAT = (str(GOLDEN / "models" / f"digits_mobilenet_{form}.tflite") for form in ("int8", "float"))
DENSE = str(GOLDEN / "singleop" / "models" / "tie_fc_i8_0.tflite")


def device() -> dict[int, np.ndarray]:
    recorded = GOLDEN / "singleop" / "recorded"
    with np.load(recorded / "tie_fc_i8_0.npz") as given, np.load(recorded / "tie_fc_i8_0@litert-opt.npz") as own:
        graph = tflq.load(DENSE).subgraphs[0]
        return {graph.inputs[0]: given["s0_in0"], graph.outputs[0]: own["s0_out0"]}


RESULTS: dict[str, Callable[[], Any]] = {
    "run": lambda: tflq.run(INT8),
    "explain": lambda: tflq.explain(DENSE, evidence=device()),
    "fit": lambda: tflq.fit(DENSE, evidence=device()),
    "reduce": lambda: tflq.reduce(DENSE, evidence=device()),
    "why": lambda: tflq.why(DENSE, evidence=device()),
    "verify": lambda: tflq.verify(DENSE, str(GOLDEN / "singleop" / "recorded" / "tie_fc_i8_0.npz")),
    "compare": lambda: tflq.compare(FLOAT, INT8, inputs=np.float32(suites.digits().images[:4])),
    "lint": lambda: tflq.lint(INT8),
    "inspect": lambda: tflq.inspect(INT8),
    "diff": lambda: tflq.diff(FLOAT, INT8),
    "prove": lambda: tflq.prove(DENSE, ["litert-ref", "tflm"]),
    "golden": lambda: tflq.load_golden(GOLDEN / "singleop" / "recorded" / "tie_fc_i8_0.npz"),
    "search_answer": lambda: tflq.search_answer(DENSE, ("litert-ref", "tflm"), tries=2),
}


@pytest.mark.slow
@each("name", RESULTS)
def test_a_result_is_a_document_that_its_schema_describes(name: str) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator
    result = RESULTS[name]()
    assert isinstance(result, Documented)
    document = result.to_dict()
    assert document == json.loads(json.dumps(document, allow_nan=False))
    assert repr(result).count("\n") <= 3
    if "schema" in document:
        stem = document["schema"].split("/")[1]
        schema = json.loads((suites.ROOT / "schemas" / f"{stem}.schema.json").read_text())
        assert not [error.message for error in validator(schema).iter_errors(document)]
    table = document
    if isinstance(result, Tabular):
        for key in result._table.split("."):
            table = table[0][key] if isinstance(table, list) else table[key]
        assert isinstance(table, list)


def test_every_class_of_results_finds_its_document() -> None:
    """A class names its document in a text, which no import checks."""
    for name in tflq.__all__:
        getattr(tflq, name)
    kinds = [kind for base in (Documented, Tabular) for kind in base.__subclasses__() if kind is not Tabular]
    kinds = [kind for kind in kinds if getattr(import_module(kind.__module__), kind.__name__) is kind]  # no slots' twin
    assert len(kinds) >= 25
    for kind in kinds:
        module, _, function = kind._document.partition(":")
        assert callable(getattr(import_module(f"tflq.face.report.verbs.{module}"), function)), kind


def test_a_table_is_what_pandas_makes_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = tflq.lint(INT8)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(json_normalize=lambda document, path: document[path[0]]))
    assert result.to_pandas() == result.to_dict()["findings"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(OptionError, match=r"pip install 'tflq\[pandas\]'"):
        result.to_pandas()


def test_a_table_in_pandas_itself() -> None:
    pandas = pytest.importorskip("pandas")
    frame = tflq.inspect(INT8).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(tflq.inspect(INT8).operators)


@each(
    ("verb", "wrong", "right"),
    [
        ("explain", "dump", "evidence"),
        ("fit", "dump", "evidence"),
        ("reduce", "dump", "evidence"),
        ("why", "dump", "evidence"),
        ("learn", "dumps", "evidence"),
        ("record", "path", "output"),
        ("save", "path", "output"),
        ("pack_suite", "folder", "output"),
        ("compare", "data", "inputs"),
        ("run_many", "samples", "inputs"),
        ("run", "input", "inputs"),
        ("quantize", "inputs", "calibration"),
        ("verify", "golden", "against"),
        ("verify", "profil", "profile"),
    ],
)
def test_a_wrong_name_of_an_argument_names_the_right_one(verb: str, wrong: str, right: str) -> None:
    with pytest.raises(ArgumentError, match=f"no argument of tflq.{verb} '{wrong}'; did you mean {right}[?]") as raised:
        getattr(tflq, verb)("model.tflite", **{wrong: 1})
    assert isinstance(raised.value, TypeError)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), TflqError)


def test_public_functions_keep_their_signatures_and_can_be_pickled() -> None:
    from inspect import signature

    assert list(signature(tflq.run).parameters)[:3] == ["model", "inputs", "profile"]
    assert pickle.loads(pickle.dumps(tflq.run)) is tflq.run


def test_the_only_input_is_an_array_or_x(tmp_path: Path) -> None:
    images = np.random.default_rng(3).integers(-128, 128, (3, 8, 8, 1)).astype(np.int8)
    np.savez(tmp_path / "x.npz", x=images)
    wanted = [value.tolist() for value in tflq.run(INT8, inputs=tmp_path / "x.npz").arrays.values()]
    assert len(wanted) == 3
    for given in (images, {"x": images}, [{"x": row[None]} for row in images], [[row[None]] for row in images]):
        assert [value.tolist() for value in tflq.run(INT8, inputs=given).arrays.values()] == wanted
    with pytest.raises(TflqError, match="no input 'y'"):
        tflq.run(INT8, inputs={"y": images})
    with pytest.raises(TflqError):
        tflq.run(INT8, inputs=np.zeros(0, np.int8))
