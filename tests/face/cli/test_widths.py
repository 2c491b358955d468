"""Every verb fits the terminal: no line is wider, words are divided nowhere but where they alone are wider."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from support import suites
from support.commands import tflq
from support.each import each
from tflq.face.cli.main import VERBS
from tflq.face.report.render.text import StyledLine, fit

GOLDEN = suites.ROOT / "golden"
MODELS = GOLDEN / "models"
#: Words of each verb on a model of many operators with long names.
QUICK = {
    "inspect": "inspect {int8}",
    "one operator": "inspect {int8} --op 4",
    "several": "inspect {int8} {lstm}",
    "profiles": "profiles",
    "diff": "diff {float} {int8} --all",
    "lint": "lint {uint8} --target tflm",
}
SLOW = {
    "overflow": "inspect {int8} --overflow",
    "run": "run {int8} --all-tensors",
    "verify": "verify {int8} --golden {dump} --profile litert-ref --all",
    "explain": "explain {int8} --dump {dump}",
    "element": "explain {int8} --element 0,0",
    "fit": "fit {int8} --dump {dump}",
    "reduce": "reduce {int8} --dump {dump} -f -o {folder}/small",
    "pair": "profiles diff litert-ref litert-opt",
    "effects": "profiles effects {int8} --all",
    "since": "profiles releases {int8} --since tflite-2.13",
    "court": "court {int8} --with litert-ref,litert-opt,tflm-cmsis-nn-single,tf-1.15-ref",
    "prove": "prove {int8} --between litert-ref litert-opt",
    "compare": "compare {float} {int8} --inputs {rows} --all",
    "quantize": "quantize {float} --calibration {rows} --recipe fast --sensitivity -f -o {folder}/q.tflite",
    "extract": "extract {int8} 2..5 -f -o {folder}/part.tflite",
    "golden": "golden show {dump}",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("widths")
    np.save(folder / "rows.npy", np.random.default_rng(0).random((8, 8, 8, 1), np.float32))
    return {
        "folder": folder,
        "int8": MODELS / "digits_mobilenet_int8.tflite",
        "float": MODELS / "digits_mobilenet_float.tflite",
        "lstm": MODELS / "digits_lstm_int8.tflite",
        "uint8": GOLDEN / "singleop" / "models" / "add_u8_0.tflite",
        "dump": folder / "dump.npz",
        "rows": folder / "rows.npy",
    }


@pytest.fixture(scope="module")
def device(files: dict[str, Path]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    words = f"record {files['int8']} --against litert-opt --all-tensors -o {files['dump']}"
    assert tflq(*shlex.split(words)).exit_code == 0


def printed(words: str, files: dict[str, Path], width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    result = tflq(*[word.format(**files) for word in words.split()])
    assert result.exit_code in (0, 1, 6), result.output
    return result.stdout.splitlines()


def check(lines: list[str], width: int) -> None:
    assert lines
    assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("verb", QUICK)
def test_a_verb_fits(verb: str, width: int, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    check(printed(QUICK[verb], files, width, monkeypatch), width)


@pytest.mark.slow
@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("verb", SLOW)
def test_a_slow_verb_fits(verb: str, width: int, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    check(printed(SLOW[verb], files, width, monkeypatch), width)


@pytest.mark.slow
@pytest.mark.skipif(bool(suites.missing()), reason="no shared test material")
@pytest.mark.parametrize("words", ["inspect {m}", "inspect {m} --op 3", "lint {m}", "profiles effects {m}", "run {m}"])
def test_a_large_model_fits(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = suites.SHARED / "suites" / "real" / "models" / "coral" / "mobilenet_v2_1.0_224_quant.tflite"
    check(printed(words, {"m": model}, 80, monkeypatch), 80)


@each("verb", ["", *VERBS])
def test_help_fits_and_ends_with_examples(verb: str) -> None:
    result = tflq(*verb.split(), "--help")
    lines = result.stdout.splitlines()
    check(lines, 80)
    assert any(re.match(rf" +tflq {verb}", line) for line in lines), "no example"


def test_numbers_stay_whole_and_commands_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    numbers = [f"{n}.123456789" for n in range(1000, 1020)]
    told = [line.text for line in fit([StyledLine("  values " + " ".join(numbers))])]
    assert all(len(text) <= 60 for text in told)
    assert " ".join(told).split()[1:] == numbers
    command = f"tflq explain {'x' * 40}.tflite --dump {'y' * 30}.npz --profile litert-opt"
    told = [line.text for line in fit([StyledLine(f"Next: {command}", "strong")])]
    assert all(len(text) <= 60 for text in told)
    shell = "\n".join(told).replace("\\\n", "")
    assert shlex.split(shell.removeprefix("Next: ")) == shlex.split(command)


def test_a_word_without_room_is_divided_at_a_slash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name = ";".join(f"functional_1/layer_{n}/batchnorm" for n in range(5))
    told = [line.text for line in fit([StyledLine(f"tensor 3 '{name}' int8")])]
    assert all(len(text) <= 60 for text in told)
    assert all(text.endswith((";", "/")) for text in told[1:-2])
    assert "".join(text.strip() for text in told).replace("tensor 3", "").startswith(f"'{name}'")
