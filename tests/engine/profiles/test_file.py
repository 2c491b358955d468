"""Profiles as files: what is printed loads again, changes of rows compute, and strange files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import tflq
from support import commands, suites
from support.commands import validate
from support.running import run_once
from support.sweeping import few
from tflq.engine.profiles import ALIASES, PROFILES, VARIANTS, by_name
from tflq.engine.profiles.building import FIELDS, VALUES
from tflq.engine.profiles.file import document_of, text_of
from tflq.engine.profiles.table import ROWS
from tflq.errors import InputError, ModelError, OptionError, TflqError, UnknownNameError, UnsupportedError
from tflq.model.ir.model import data_text

MODELS = suites.ROOT / "golden" / "singleop" / "models"
SCHEMA = json.loads(data_text("profile.schema.json"))


def written(folder: Path, document: Any, name: str = "mine.yaml") -> str:
    path = folder / name
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", ["litert-ref+single-rounding", *few(PROFILES, *list(PROFILES)[::9])])
def test_what_is_printed_loads_to_the_same_table(name: str, tmp_path: Path) -> None:
    profile = by_name(name)
    validate(document_of(profile), "profile")
    again = by_name(written(tmp_path, text_of(profile)))
    assert again.kernels is profile.kernels
    assert (again.arithmetic, again.source, again.about) == (profile.arithmetic, profile.source, profile.about)
    assert again.name == str(tmp_path / "mine.yaml")


def test_rows_and_variants_are_printed_too(tmp_path: Path) -> None:
    stated = {"variants": ["static-alpha"], "base": "tf-1.15-ref", "rows": [{"op": "ADD", "refused": True}]}
    profile = by_name(written(tmp_path, stated))
    again = by_name(written(tmp_path, text_of(profile), "again.yaml"))
    assert again.stated == profile.stated == {"variants": ["static-alpha"], "rows": stated["rows"]}
    assert "ADD" not in again.kernels
    assert [row.session for row in again.kernels["LEAKY_RELU"]][:1] == [True]


def test_the_schema_names_every_field_and_value() -> None:
    stated = SCHEMA["$defs"]["arithmetic"]["properties"]
    assert tuple(stated) == FIELDS
    assert all(stated[field]["enum"] == list(values) for field, values in VALUES.items())
    assert SCHEMA["properties"]["base"]["enum"] == list(ROWS)
    assert [f"+{word}" for word in SCHEMA["properties"]["variants"]["items"]["enum"]] == list(VARIANTS)


def run(model: str, profile: str, *inputs: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return run_once(tflq.Interpreter(str(MODELS / model), profile=profile), inputs)[0]


def single_input(op: str, type_: str) -> str:
    for path in sorted(MODELS.glob("*.tflite")):
        model = tflq.load(path)
        graph = tflq.model.ir.view(model)
        same = {graph.tensor(t).type.label for t in (*graph.inputs, *graph.outputs)} == {type_}
        if [o.name for o in graph.ops] == [op] and same and len(graph.inputs) == 1:
            return path.name
    raise AssertionError(f"no recorded model of {op} on {type_}")


def test_a_table_gives_the_codes_that_it_lists(tmp_path: Path) -> None:
    model = single_input("LOGISTIC", "int8")
    table = [int(code) for code in np.random.default_rng(1).integers(-128, 128, 256)]
    profile = written(tmp_path, {"rows": [{"op": "LOGISTIC", "types": "int8 -> int8", "table": table}]})
    shape = tflq.Interpreter(str(MODELS / model)).get_input_details()[0]["shape"]
    x = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
    np.testing.assert_array_equal(run(model, profile, x), np.array(table, np.int8)[x.astype(int) + 128])


def test_a_row_like_another_profiles_computes_as_it_does(tmp_path: Path) -> None:
    model = single_input("LOGISTIC", "int8")
    like = written(tmp_path, {"rows": [{"op": "LOGISTIC", "like": "tflm"}]})
    detail = tflq.Interpreter(str(MODELS / model)).get_input_details()[0]
    x = np.random.default_rng(3).integers(-128, 128, detail["shape"]).astype(np.int8)
    np.testing.assert_array_equal(run(model, like, x), run(model, "tflm", x))
    assert by_name(like).kernels["SOFTMAX"] == by_name("litert-ref").kernels["SOFTMAX"]


def test_arithmetic_of_one_row_differs_from_the_rest(tmp_path: Path) -> None:
    types = "int8 int8 -> int8"
    change = {"op": "MUL", "types": types, "arithmetic": {"requantize": "single-rounding"}}
    profile = by_name(written(tmp_path, {"rows": [change]}))
    first, *_ = profile.kernels["MUL"]
    assert str(first.signature) == types
    assert profile.arithmetic == by_name("litert-ref").arithmetic


def test_refused_rows_are_refused(tmp_path: Path) -> None:
    model = single_input("LOGISTIC", "int8")
    whole = written(tmp_path, {"rows": [{"op": "LOGISTIC", "refused": True}]})
    with pytest.raises(UnsupportedError):
        tflq.Interpreter(str(MODELS / model), profile=whole).allocate_tensors()
    one = written(tmp_path, {"rows": [{"op": "LOGISTIC", "types": "int8 -> int8", "refused": True}]}, "one.yaml")
    with pytest.raises(ModelError, match="refused by the profile"):
        tflq.Interpreter(str(MODELS / model), profile=one).allocate_tensors()
    tflq.Interpreter(str(MODELS / single_input("LOGISTIC", "uint8")), profile=one).allocate_tensors()


@pytest.mark.parametrize(
    "document",
    [
        "",
        "[]",
        "text",
        "a: [",
        "!!python/object:os.system {}",
        "&a [*a]",
        {"schema": "tflq/profile/2"},
        {"base": "litert"},
        {"base": "mine.yaml"},
        {"base": 3},
        {"bases": "litert-ref"},
        {"arithmetic": {"requantise": "single-rounding"}},
        {"arithmetic": {"requantize": "triple"}},
        {"arithmetic": {"requantize": None}},
        {"arithmetic": []},
        {"arithmetic": {"first_level_cache": -1}},
        {"arithmetic": {"first_level_cache": True}},
        {"runtime": {"release": "litert-9.9"}},
        {"runtime": {"vectors": 1}},
        {"runtime": {"core": "a53"}},
        {"figures": "nobody"},
        {"variants": ["twice"]},
        {"variants": "single-rounding"},
        {"variants": ["static-alpha"]},
        {"source": {"package": 1}},
        {"rows": {"op": "ADD"}},
        {"rows": [{"op": "ADD"}]},
        {"rows": [{"refused": True}]},
        {"rows": [{"op": "NONE", "refused": True}]},
        {"rows": [{"op": "ADD", "refused": False}]},
        {"rows": [{"op": "ADD", "refused": True, "like": "tflm"}]},
        {"rows": [{"op": "ADD", "like": "mine.yaml"}]},
        {"rows": [{"op": "ADD", "like": 5}]},
        {"rows": [{"op": "ADD", "types": "int8", "refused": True}]},
        {"rows": [{"op": "ADD", "types": "int99 -> int8", "refused": True}]},
        {"rows": [{"op": "ADD", "types": "string string -> string", "refused": True}]},
        {"rows": [{"op": "RELU", "types": "int8 -> int8", "table": [1, 2]}]},
        {"rows": [{"op": "RELU", "types": "int8 -> int8", "table": [300] * 256}]},
        {"rows": [{"op": "RELU", "types": "int8 -> int8", "table": [0.5] * 256}]},
        {"rows": [{"op": "ADD", "types": "int8 int8 -> int8", "table": [0] * 256}]},
        {"rows": [{"op": "RELU", "types": "int16 -> int16", "table": [0] * 256}]},
    ],
    ids=str,
)
def test_a_strange_file_is_refused_by_name(document: Any, tmp_path: Path) -> None:
    path = written(tmp_path, document)
    with pytest.raises((InputError, OptionError, UnknownNameError)) as caught:
        by_name(path)
    assert "mine.yaml" in str(caught.value)
    ended = commands.tflq("inspect", MODELS / single_input("LOGISTIC", "int8"), "--profile", path)
    assert ended.exit_code == 2, ended.output


def test_thousands_of_changes_make_one_table(tmp_path: Path) -> None:
    """A table over a table for each change would end in a RecursionError."""
    profile = by_name(written(tmp_path, "rows:\n" + "- {op: RELU, like: tflm}\n" * 1500))
    assert {row.signature for row in by_name("tflm").kernels["RELU"]} <= {
        row.signature for row in profile.kernels["RELU"]
    }
    assert profile.kernels["ADD"] == by_name("litert-ref").kernels["ADD"]


def test_a_file_that_is_not_there_is_no_profile(tmp_path: Path) -> None:
    with pytest.raises(TflqError, match="No such file"):
        by_name(str(tmp_path / "none.yaml"))


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, {"about": "one"})
    assert by_name(path).about == "one"
    assert by_name(path) is by_name(path)
    written(tmp_path, {"about": "another"})
    assert by_name(path).about == "another"


def test_show_prints_the_file() -> None:
    shown = commands.tflq("profiles", "show", "tflm")
    assert yaml.safe_load(shown.stdout) == document_of(by_name("tflm"))
    assert json.loads(commands.tflq("profiles", "show", "tflm", "--json").stdout) == document_of(by_name("tflm"))
    for words in (["show"], ["show", "tflm", "spec"], ["show", "nobody"], ["show", "tflm", "--prove"]):
        assert commands.tflq("profiles", *words).exit_code == 2
    assert set(ALIASES.values()) <= set(ROWS)
