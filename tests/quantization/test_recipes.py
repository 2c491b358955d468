"""Recipes as documents: they come back as they were, mistakes are named, and equal ones make equal files."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import tflq
from support import suites
from support.commands import validate
from support.each import each
from support.float_graphs import random_graph, samples
from tflq.errors import FileAccessError, InputError, OptionError, UnknownNameError
from tflq.model.ir import TensorType
from tflq.model.ir.model import data_text
from tflq.quantization.recipe import (
    PRESETS,
    BiasCorrection,
    Methods,
    Mode,
    Objective,
    RangeRule,
    RangeTarget,
    Ranging,
    Recipe,
    RecipeBudget,
    Refining,
    Rounding,
    Search,
    Solving,
    Spared,
    Watch,
    WatchOrder,
)
from tflq.quantization.recipe_files import changed_recipe, digest, document_of, read_budget, read_recipe, recipe_from

EVERY_FIELD = Recipe(
    mode=Mode.UINT8,
    input_type=TensorType.FLOAT32,
    output_type=TensorType.INT8,
    keep_float=("3", "SOFTMAX"),
    budget=RecipeBudget(30.0, 0.99, 100_000, 0.25, Spared.FLOAT),
    turns=3,
    profile="tflm",
    candidates=(
        Methods(),
        Methods(
            0.25,
            Ranging(
                Watch.PERCENTILE,
                RangeRule.EXTEND,
                Search(Objective.COSINE, Solving.OCTAV),
                Search(target=RangeTarget.OUTPUT),
                WatchOrder.ONLINE,
                True,
            ),
            Refining(Rounding.ADAROUND, BiasCorrection.ANALYTIC, True, True, 7),
        ),
    ),
)
ALL = {**PRESETS, "every field": EVERY_FIELD}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("kind", ["json", "yaml", "yml"])
def test_a_recipe_comes_back_from_a_file(name: str, kind: str, tmp_path: Path) -> None:
    document = document_of(ALL[name])
    path = tmp_path / f"recipe.{kind}"
    path.write_text(json.dumps(document) if kind == "json" else yaml.safe_dump(document))
    assert read_recipe(path) == ALL[name]
    assert digest(read_recipe(str(path))) == digest(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_a_recipe_follows_its_schema(name: str) -> None:
    validate(document_of(ALL[name]), "recipe")


def test_the_recipe_in_the_documents_is_one() -> None:
    text = (suites.ROOT / "docs" / "quantize.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    recipe = recipe_from(yaml.safe_load(example))
    assert recipe.keep_float == ("SOFTMAX",)
    assert len(recipe.candidates) == 2


def words(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from words(item)
    elif isinstance(value, list):
        for item in value:
            yield from words(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    "kind",
    [Mode, Spared, Watch, RangeRule, Objective, Solving, RangeTarget, WatchOrder, Rounding, BiasCorrection],
    ids=lambda kind: kind.__name__,
)
def test_the_schema_knows_every_word(kind: type[Enum]) -> None:
    assert {member.value for member in kind} <= set(words(json.loads(data_text("recipe.schema.json"))))


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("mode: int16x8\ncandidates:\n- ranging: {watch: relative, activations: {}}\n")
    expected = Recipe(Mode.INT16X8, candidates=(Methods(ranging=Ranging(Watch.RELATIVE, activations=Search())),))
    assert read_recipe(tmp_path / "r.yaml") == expected


def test_words_may_stand_for_values_in_python() -> None:
    assert Recipe("int16x8", "float32") == Recipe(Mode.INT16X8, TensorType.FLOAT32)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("document", "first"),
    [
        ({"moed": "int8"}, "recipe.mode"),
        ({"keepfloat": []}, "recipe.keep_float"),
        ({"candidates": [{"rangeing": {}}]}, "recipe.candidates[0].ranging"),
        ({"candidates": [{}, {"refining": {"roundig": "gptq"}}]}, "recipe.candidates[1].refining.rounding"),
    ],
)
def test_an_unknown_field_is_answered_by_the_nearest_one(document: dict[str, Any], first: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        recipe_from(document)
    assert caught.value.known[0] == first


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"mode": "int4"}, r"'int4'; did you mean int8x4\?; there are: int8"),
        ({"mode": 8}, "no recipe.mode '8'"),
        ({"input_type": "string"}, "no input_type 'string'"),
        ({"turns": 5}, "1 to 4, got 5"),
        ({"turns": True}, "recipe.turns: expected int, got True"),
        ({"candidates": []}, "needs a candidate"),
        ({"candidates": {}}, "recipe.candidates: expected a list"),
        ({"candidates": [7]}, "recipe.candidates[0]: expected fields and values"),
        ({"candidates": [{"equalize": "much"}]}, "recipe.candidates[0].equalize: expected float"),
        ({"schema": "tflq/recipe/2"}, "this version reads 'tflq/recipe/1'"),
        ([], "a mapping of fields"),
    ],
)
def test_a_value_that_does_not_suit_its_field_is_named(document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("[", r"\[").replace("]", r"\]")):
        recipe_from(document)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="litert-xnnpack"):
        recipe_from({"profile": "litert-xnnpak"})


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("{")
    (tmp_path / "r.yaml").write_text("a: [")
    with pytest.raises(InputError, match="is not readable JSON"):
        read_recipe(tmp_path / "r.json")
    with pytest.raises(InputError, match="is not readable YAML"):
        read_recipe(tmp_path / "r.yaml")
    with pytest.raises(FileAccessError):
        read_recipe(tmp_path / "nothing.json")
    with pytest.raises(UnknownNameError, match="fast, balanced, best"):
        read_recipe("fats")


def test_a_budget_in_words() -> None:
    assert read_budget("sqnr>=35, agreement>=0.99,bytes<=2000 , share<=.1, spared=float") == RecipeBudget(
        35.0, 0.99, 2000, 0.1, Spared.FLOAT
    )
    for wrong in ("sqnr>=much", "bytes<=1.5", "spared=double"):
        with pytest.raises((OptionError, UnknownNameError)):
            read_budget(wrong)


def test_digests_tell_recipes_apart() -> None:
    changed = [
        EVERY_FIELD,
        replace(EVERY_FIELD, mode=Mode.INT8),
        replace(EVERY_FIELD, turns=1),
        replace(EVERY_FIELD, budget=None),
        replace(EVERY_FIELD, candidates=EVERY_FIELD.candidates[1:]),
    ]
    assert len({digest(recipe) for recipe in changed}) == len(changed)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["fast", "balanced"])
def test_the_same_recipe_and_data_make_the_same_bytes_and_the_file_says_which(preset: str, tmp_path: Path) -> None:
    model = random_graph(3)
    given = samples(model, 3)
    first = tflq.quantize(model, given, preset)
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(document_of(PRESETS[preset])))
    again = tflq.quantize(model, given, path)
    first.save(tmp_path / "first.tflite")
    assert (tmp_path / "first.tflite").read_bytes() == tflq.save(again.model)
    stored = tflq.load(tmp_path / "first.tflite")
    entry = dict(stored.metadata or ())["tflq_quantization"]
    said = json.loads(np.asarray(stored.buffers[entry].data).tobytes())
    assert said == {"recipe": digest(PRESETS[preset]), "tflq": tflq.__version__}


WRONG_NUMBERS = [
    {"turns": 0},
    {"turns": 5},
    {"turns": 1.5},
    {"budget": {"least_sqnr": float("nan")}},
    {"budget": {"least_agreement": 1.5}},
    {"budget": {"most_bytes": -1}},
    {"budget": {"most_share": float("inf")}},
    *({"candidates": [{"equalize": value}]} for value in (-0.1, 1.1, 1e308, float("nan"), float("-inf"))),
    *({"candidates": [{"refining": {"samples": value}}]} for value in (0, -1, True, 0.5)),
]


@each("document", WRONG_NUMBERS, ids=str)
def test_numbers_have_bounds(document: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        recipe_from(document)


WRONG_DOCUMENTS = {
    "mode.json": b'{"mode": {"a": 1}}',
    "list.yaml": b"- 1",
    "none.yaml": b"",
    "date.yaml": b"mode: 2020-01-01",
    "deep.yaml": b"[" * 10000,
    "deep.json": b"[" * 100000,
    "key.yaml": b"1: 2",
    "cycle.yaml": b"mode: &a {b: *a}",
    "unhashable.yaml": b"? [a]\n: 1",
    "escape.yaml": b'mode: "\\x1b[31m"',
    "big.json": b'{"turns": ' + b"9" * 5000 + b"}",
    "long.json": b'{"' + b"x" * 1000000 + b'": 1}',
    "schema.json": b'{"schema": 1e999}',
    "bytes.yaml": b"\xff\xfe\xff",
    "types.json": b'{"input_type": ["int8"]}',
    "spared.json": b'{"budget": {"spared": []}}',
    "nan.json": b'{"seed": NaN}',
}


@pytest.mark.parametrize("name", WRONG_DOCUMENTS)
def test_documents_that_are_no_recipes_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(WRONG_DOCUMENTS[name])
    with pytest.raises(InputError) as found:
        read_recipe(tmp_path / name)
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 5000


def test_fields_and_arguments_of_a_recipe_have_the_same_defaults() -> None:
    arguments = inspect.signature(Recipe).parameters
    assert {f.name: f.default for f in fields(Recipe)} == {name: a.default for name, a in arguments.items()}


def test_float16_is_a_mode_of_weights() -> None:
    recipe = Recipe(mode="float16")
    assert (recipe.mode, recipe.weights_type) == (Mode.WEIGHTS, TensorType.FLOAT16)
    assert recipe.mode_word == "float16"
    assert recipe_from(document_of(recipe)) == recipe
    assert changed_recipe(Recipe(), (), None, {"mode": "float16"}) == recipe
    with pytest.raises(UnknownNameError, match="weights, float16"):
        Recipe(mode="float17")
