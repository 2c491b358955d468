"""`quantize --advise`: options that win losses back, as the command with them measures; remarks about samples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from numpy.typing import NDArray

import tflq
from support import commands, suites
from support.commands import validate
from tflq.face.report.verbs.quantize_texts import conclusion_text
from tflq.model.ir import TensorType, view
from tflq.quantization.advice import Advice, Measured, advise, costly_operators, to_try
from tflq.quantization.judge.trials import Sensitivity
from tflq.quantization.quarters import remarks_about
from tflq.quantization.recipe import Methods, Recipe
from tflq.quantization.samples import Calibration

GOLDEN = suites.ROOT / "golden" / "models"
FLOAT = GOLDEN / "digits_mobilenet_float.tflite"
DECODER = GOLDEN / "tiny_decoder_float.tflite"


def digits(count: int) -> NDArray[np.float32]:
    return suites.digits().images[:count]


def quantize(*words: object) -> Result:
    return commands.tflq("quantize", *words, terminal_width=200)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a recipe of one configuration, samples and labels, and the document of its advice."""
    home = tmp_path_factory.mktemp("advice")
    (home / "recipe.yaml").write_text("schema: tflq/recipe/1\ncandidates: [{}]\n")
    with np.load(GOLDEN / "digits_test.npz") as file:
        np.savez(home / "rows.npz", x=digits(40))
        np.savez(home / "other.npz", x=digits(70)[40:])
        np.save(home / "labels.npy", file["labels"][40:70])
    result = quantize(*command(home), "--advise", "--json", "--html", home / "page.html")
    assert result.exit_code in (0, 1, 5), result.output
    document: dict[str, Any] = json.loads(result.stdout)
    validate(document, "quantize")
    return home, document


def command(home: Path) -> list[object]:
    rows = ["--calibration", home / "rows.npz", "--evaluate", home / "other.npz", "--labels", home / "labels.npy"]
    return [FLOAT, *rows, "--recipe", home / "recipe.yaml", "-o", home / "out.tflite", "-f", "--jobs", "1"]


def operators_of(path: Path) -> tuple[int, int]:
    graph = view(tflq.load(path))
    made = [graph.tensors[o.outputs[0]].type for o in graph.ops if o.builtin not in ("QUANTIZE", "DEQUANTIZE")]
    return made.count(TensorType.FLOAT32), made.count(TensorType.INT16)


def test_a_portable_model_gets_no_options_that_it_cannot_have() -> None:
    result = tflq.quantize(FLOAT, digits(4), Recipe(candidates=(Methods(),)))
    for portable in ((), ("all",)):
        recipe = Recipe(candidates=(Methods(),), portable=portable, float_tail="none" if portable else "auto")
        tried = [words for words, _ in to_try(tflq.load(FLOAT), recipe, result, is_evaluated=True)]
        assert (("--mode", "int16x8") in tried) is not bool(portable)
        assert tried


@pytest.mark.slow
def test_every_option_gives_what_the_advice_measured(made: tuple[Path, dict[str, Any]]) -> None:
    home, document = made
    advice = document["advice"]
    assert 2 <= len(advice["trials"]) <= 6
    assert advice["samples"] == 30
    for trial in (advice["written"], *advice["trials"]):
        again = json.loads(quantize(*command(home), *trial["options"], "--json").stdout)
        assert again["comparison"]["sqnr"] == trial["sqnr"]
        assert again["comparison"]["agreement"]["accuracy"]["other"] == trial["accuracy"]
        assert again["output"]["size"] == trial["size"] == (home / "out.tflite").stat().st_size
        assert operators_of(home / "out.tflite") == (trial["floats"], trial["wides"])
    assert ["--budget", "share<=0.1"] in [trial["options"] for trial in advice["trials"]]
    wide = next(trial for trial in advice["trials"] if trial["options"] == ["--mode", "int16x8"])
    assert wide["wides"] > 0
    assert wide["sqnr"] > advice["written"]["sqnr"]


@pytest.mark.slow
def test_the_page_and_the_text_have_the_table(made: tuple[Path, dict[str, Any]]) -> None:
    home, document = made
    assert 'id="advice"' in (home / "page.html").read_text()
    assert [text for text in document["advice"]["data"] if not text.startswith("unsure")] == []
    plain = json.loads(quantize(*command(home), "--json").stdout)
    assert plain["advice"] is None


def test_the_best_trial_leads_and_small_gains_do_not_count() -> None:
    written = Measured((), sqnr=20.0, accuracy=0.9, size=100)
    less, more, even = (
        Measured(("--mode", name), sqnr=ratio, accuracy=share, size=120)
        for name, ratio, share in (("a", 20.4, 0.9), ("b", 30.0, 0.95), ("c", 40.0, 0.9))
    )
    refused = Measured(("--mode", "d"), error="no")
    advice = Advice((), written, (more, even, less, refused), 10)
    assert advice.worth == (more, even)
    assert "--mode b wins back most" in conclusion_text(advice)
    assert "20 bytes more" in conclusion_text(advice)
    assert "none wins back" in conclusion_text(Advice((), written, (less, refused), 10))
    assert "none wins back" in conclusion_text(Advice((), written, (), 10))


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (digits(64), []),
        (digits(5), ["few samples"]),
        (np.repeat(digits(1), 40, 0), ["constant"]),
        (np.concatenate([digits(10)] * 4), ["repeated"]),
        (np.clip(np.rint(digits(40) * 255), 0, 255), ["range"]),
    ],
    ids=["good", "few", "constant", "repeated", "pixels"],
)
def test_calibration_data_are_judged(rows: NDArray[np.float32], kinds: list[str]) -> None:
    model = tflq.load(FLOAT)
    samples = list(Calibration(model, rows))
    assert [text.partition(":")[0] for text in remarks_about(model, samples)] == kinds
    assert not [text for text in remarks_about(model, samples, has_scaling=True) if text.startswith("range")]


def test_every_run_states_what_is_wrong_with_the_data(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", digits(5))
    (recipe := tmp_path / "one.yaml").write_text("candidates:\n- {}\n")
    made = quantize(FLOAT, "--calibration", tmp_path / "x.npy", "--recipe", recipe, "-o", tmp_path / "o.tflite")
    assert made.exit_code in (0, 5), made.output
    assert "calibration data: few samples: 5; 32 or more" in made.output


def test_one_class_is_remarked_by_advice() -> None:
    model = tflq.load(FLOAT)
    samples = Calibration(model, np.float32(0.3) + digits(40) * np.float32(1e-3))
    result = tflq.quantize(model, samples, Recipe())
    assert [text for text in advise(model, samples, Recipe(), result).data if text.startswith("one class")]


@pytest.mark.parametrize(
    ("model", "words", "pattern"),
    [
        (DECODER, (), "--advise does not apply"),
        (GOLDEN / "digits_mobilenet_int8.tflite", ("--requantize", "bias"), "--advise is for float models"),
    ],
)
def test_advice_is_refused_where_there_is_none(
    model: Path, words: tuple[str, ...], pattern: str, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", digits(8))
    out = tmp_path / "o.tflite"
    result = quantize(model, "--calibration", tmp_path / "x.npy", "-o", out, "--advise", *words)
    assert result.exit_code == 2, result.output
    assert pattern in result.output
    assert not out.exists()


def test_costly_operators_add_noise_or_are_measured() -> None:
    model = tflq.load(FLOAT)
    made = tflq.quantize(model, digits(24), Recipe())
    found = costly_operators(model, made)
    graph, ratios = view(model), {t.index: t.sqnr for t in made.report.comparison.tensors}
    assert len(set(found)) == len(found) > 3
    for index in found[:3]:
        makers = [graph.maker(t) for t in graph.op(index).inputs]
        before = min([ratios[m.index] for m in makers if m is not None and m.index in ratios], default=300.0)
        assert ratios[index] < before
    costs = tuple(Sensitivity(k, "CONV_2D", float(k), None) for k in (7, 3))
    measured = replace(made, report=replace(made.report, sensitivities=costs))
    assert costly_operators(model, measured) == [7, 3]
    alone = replace(made, report=replace(made.report, comparison=replace(made.report.comparison, tensors=())))
    assert costly_operators(model, alone) == []
