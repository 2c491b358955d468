"""`tflq quantize --help` fits one screen; the other options work, and `--help-all` lists them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import Result

from support import commands, suites
from tflq.face.cli.make import quantize_command
from tflq.face.cli.options import OneScreen
from tflq.quantization.recipe import PRESETS, Mode, RecipeBudget, Spared
from tflq.quantization.recipe_files import read_recipe, recipe_from
from tflq.quantization.weights.recipe import Layer, weight_recipe_from
from tflq.verbs.quantize import RecipeWords, recipe_of

FLOAT = suites.ROOT / "golden" / "models" / "digits_mobilenet_float.tflite"
DECODER = suites.ROOT / "golden" / "models" / "tiny_decoder_float.tflite"


def tflq(*words: object) -> Result:
    return commands.tflq("quantize", *words, terminal_width=80)


def options_of(text: str) -> list[str]:
    return text[text.index("\nOptions:\n") :].splitlines()[2:]


def test_the_options_of_help_fit_one_screen() -> None:
    result = tflq("--help")
    lines = options_of(result.output)
    assert result.exit_code == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert {"--help-all", "--print-recipe", "--calibration", "--help"} <= set(" ".join(lines).replace(",", "").split())
    assert not any("--block" in line or "--jobs" in line for line in lines)


def test_help_all_lists_every_option() -> None:
    text = tflq("--help-all").output
    assert isinstance(quantize_command, OneScreen)
    for parameter in quantize_command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[0] in text
    assert set(quantize_command.screen) <= {parameter.name for parameter in quantize_command.params}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("words", [(), (FLOAT,)], ids=["no model", "a model"])
def test_the_recipe_printed_is_the_recipe_used(preset: str, words: tuple[object, ...], tmp_path: Path) -> None:
    given = ("--keep-float", "SOFTMAX", "--budget", "agreement>=0.99,spared=float", "--output-type", "float32")
    result = tflq(*words, "--print-recipe", "--recipe", preset, *given, "--no-constant-names")
    assert result.exit_code == 0, result.output
    path = tmp_path / "recipe.yaml"
    path.write_text(result.stdout)
    expected = recipe_of(
        RecipeWords(
            recipe=preset,
            keep_float=("SOFTMAX",),
            budget="agreement>=0.99,spared=float",
            output_type="float32",
            no_constant_names=True,
        )
    )
    assert read_recipe(path) == expected
    assert expected.budget == RecipeBudget(least_agreement=0.99, spared=Spared.FLOAT)
    assert expected.candidates == PRESETS[preset].candidates
    document = json.loads(tflq("--print-recipe", "--recipe", path, "--json").stdout)
    assert recipe_from(document) == expected


def test_options_that_left_the_screen_still_count() -> None:
    assert recipe_of(RecipeWords(weights="int4")).mode is Mode.INT8X4
    text = tflq("--print-recipe", "--float-tail", "none", "--weights", "int4", "--mode", "dynamic").stdout
    assert "mode: dynamicx4" in text
    assert "float_tail: none" in text


@pytest.mark.parametrize("words", [(DECODER,), ("--mode", "mixed"), ("--block", "64", "--mode", "dynamicx4")])
def test_decoders_have_a_recipe_of_their_own(words: tuple[object, ...], tmp_path: Path) -> None:
    result = tflq(*words, "--print-recipe", "--layer", "attention=int4:32")
    assert result.exit_code == 0, result.output
    path = tmp_path / "recipe.yaml"
    path.write_text(result.stdout)
    again = tflq("--print-recipe", "--recipe", path, "--json")
    recipe = weight_recipe_from(json.loads(again.stdout))
    assert recipe.layers[-1] == Layer("attention", "int4", 32)


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ((FLOAT,), "--calibration"),
        ((FLOAT, "--calibration", "x.npz"), "--output"),
        ((), "MODEL"),
        (("--print-recipe", "--recipe", "nothing"), "fast"),
        (("--print-recipe", "--mode", "nothing"), "int8"),
        (("--print-recipe", "--weights", "int4", "--mode", "uint8"), "--weights"),
        ((FLOAT, "--print-recipe", "--block", "32"), "--block is for decoders"),
        ((DECODER, "--print-recipe", "--portable"), "--portable does not apply"),
        ((DECODER, "--print-recipe", "--std", "255"), "--mean or --std does not apply"),
        (("--print-recipe", "nothing.tflite"), "nothing.tflite"),
    ],
)
def test_misuse_is_refused_before_anything_runs(words: tuple[object, ...], pattern: str) -> None:
    result = tflq(*words)
    assert result.exit_code == 2, result.output
    assert pattern in result.output
