"""All unknown words of a command line are named at once, each with its suggestion, and the command to paste instead."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support import suites
from tflq.face.cli.main import VERBS, cli
from tflq.face.cli.spelling import nearest, spelling_of
from tflq.model.ir.schema import data_text

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def tflq(line: str) -> Result:
    return CliRunner().invoke(cli, shlex.split(line))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(MODEL, tmp_path / "model.tflite")
    monkeypatch.chdir(tmp_path)
    return tmp_path


#: A command line, the unknown words in it, and the corrected one.
LINES = {
    "verfy model.tflite --profle litert-ref": ("verfy --profle", "verify model.tflite --profile litert-ref"),
    "verify model.tflite --profle litert-rf": ("--profle litert-rf", "verify model.tflite --profile litert-ref"),
    "verify model.tflite --juint a.xml --srif=b": ("--juint --srif", "verify model.tflite --junit a.xml --sarif=b"),
    "verify modle.tflite --profile=tlfm": ("modle.tflite tlfm", "verify model.tflite --profile=tflm"),
    "verify model.tflite --mode isolatd --aginst litert-opt": (
        "isolatd --aginst",
        "verify model.tflite --mode isolated --against litert-opt",
    ),
    "quantize model.tflite --keep-float softmx --runtimes litert-rf,tlfm --calibration c.npz -o c.tflite": (
        "softmx litert-rf tlfm",
        "quantize model.tflite --keep-float SOFTMAX --runtimes litert-ref,tflm --calibration c.npz -o c.tflite",
    ),
    "extract model.tflite CNV_2D SOFTMX -o c.tflite": (
        "CNV_2D SOFTMX",
        "extract model.tflite CONV_2D SOFTMAX -o c.tflite",
    ),
    "prove model.tflite --between litert-rf tlfm": ("litert-rf tlfm", "prove model.tflite --between litert-ref tflm"),
    "conform rnu suite.npz --levl smoke": ("rnu --levl", "conform run suite.npz --level smoke"),
    "conform run suite.npz --target profile:tlfm --levl smoke": (
        "tlfm --levl",
        "conform run suite.npz --target profile:tflm --level smoke",
    ),
    "learn --target profile:tlfm --operators CONV_2D,SOFTMX -o a.yaml": (
        "tlfm SOFTMX",
        "learn --target profile:tflm --operators CONV_2D,SOFTMAX -o a.yaml",
    ),
    "idntify model.tflite d.npz --profil tflm": ("idntify --profil", "identify model.tflite d.npz --profile tflm"),
    "model.tflite --profle tlfm": ("--profle tlfm", "inspect model.tflite --profile tflm"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("line", "unknown", "corrected"), [(line, *answer) for line, answer in LINES.items()])
def test_all_unknown_words_are_named_at_once(line: str, unknown: str, corrected: str) -> None:
    result = tflq(line)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    words = unknown.split()
    first = next(number for number, text in enumerate(lines) if text.endswith(f"{len(words)} words are not known:"))
    named = lines[first + 1 : -1]
    assert [text.split(":")[0].strip() for text in named] == words
    assert all("did you mean" in text for text in named)
    assert lines[-1] == f"Corrected: tflq {corrected}"
    assert not spelling_of(shlex.split(corrected), cli).unknown


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "corrected"),
    [
        ("verfy model.tflite", "verify model.tflite"),
        ("VERIFY model.tflite", "verify model.tflite"),
        ("verify modle.tflite", "verify model.tflite"),
        ("run model.tflite --profile litert-rf", "run model.tflite --profile litert-ref"),
        ("verify model.tflite --mode isolatd", "verify model.tflite --mode isolated"),
        ("why model.tflite runtime:litert-rf", "why model.tflite runtime:litert-ref"),
        ("verify 'my model.tflite' --profle tflm", "verify 'my model.tflite' --profile tflm"),
    ],
)
def test_one_unknown_word_has_a_corrected_command_too(line: str, corrected: str) -> None:
    shutil.copy("model.tflite", "my model.tflite")
    result = tflq(line)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Corrected: tflq {corrected}"
    assert "words are not known" not in result.stderr


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "verfy model.tflite --profle x",  # no profile is like x
        "xyzzy model.tflite --profle tflm",  # no verb is like xyzzy
        "verify model.tflite --xyzzy --profle tflm",
        "verify model.tflite --profle",  # its value is missing
        "fit model.tflite --profile litert-rf",  # so is the dump
    ],
)
def test_without_a_best_word_for_each_there_is_no_corrected_command(line: str) -> None:
    result = tflq(line)
    assert (result.exit_code, "Corrected" in result.stderr) == (2, False)


@pytest.mark.usefixtures("folder")
def test_another_mistake_keeps_its_own_message() -> None:
    result = tflq("fit model.tflite --profile litert-rf")
    assert "Missing option '--dump'" in result.stderr
    assert "did you mean litert-ref?" in result.stderr


@pytest.mark.usefixtures("folder")
def test_the_document_has_the_words_and_the_command() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    result = tflq("verfy model.tflite --profle tlfm --json")
    found = json.loads(result.stdout)
    jsonschema.validate(found, json.loads(data_text("error.schema.json")))
    assert (result.exit_code, found["exit_code"], result.stderr) == (2, 2, "")
    assert found["message"].startswith("3 words are not known: verfy:")
    assert [line.split(":")[0] for line in found["facts"]["unknown"]] == ["verfy", "--profle", "tlfm"]
    assert found["facts"]["corrected"] == "tflq verify model.tflite --profile tflm --json"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("word", ["mo\x1bdle.tflite", "\udcff.tflite", "modle\n.tflite", "a" * 5000 + ".tflite"])
def test_hostile_words_leave_the_terminal_whole(word: str) -> None:
    result = CliRunner().invoke(cli, ["verify", word, "--profle", "tlfm"])
    assert result.exit_code == 2
    assert all(line.isprintable() for line in result.stderr.splitlines())


def test_a_broken_model_is_no_reason_to_fail_otherwise(folder: Path) -> None:
    (folder / "model.tflite").write_bytes(b"TFL3" * 9)
    result = tflq("extract model.tflite CNV_2D --outptu a.tflite --profle tflm")
    assert (result.exit_code, "--outptu" in result.stderr, "Traceback" in result.stderr) == (2, True, False)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "line",
    [
        "quantize model.tflite --portable --mode int8 --calibration c -o o.tflite",
        "quantize model.tflite --portable=tflm,LiteRT-Ref --keep-float 3 --keep-float 1..4 --calibration c -o o",
        "bench model.tflite --against none --profile litert-xnn --mean -1",
        "session model.tflite --between litert-ref runtime:litert-2.4-ref -qf",
        "conform run suite.npz --target './npu.sh --fast' --level smoke -- --odd",
        "run model.tflite -oout.npz --profile litert-ref+single-rounding --inputs -",
        "identify missing.tflite d.npz",
        "golden merge a.zip b.zip -o c.zip",
        "verify https://example.org/modle.tflite --tolerance '*=1'",
        "--version",
        "",
    ],
)
def test_right_words_are_never_named(line: str) -> None:
    assert spelling_of(shlex.split(line), cli).unknown == ()


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_examples_of_the_help_are_spelled_right(verb: str) -> None:
    lines = tflq(f"{verb} --help").stdout.splitlines()
    examples = [line.strip() for line in lines if line.startswith(f"  tflq {verb} ")]
    for line in examples:
        words = shlex.split(line.split(" > ")[0].removesuffix("\\"))[1:]
        assert spelling_of(words, cli).unknown == ()


def test_equally_near_words_are_all_named() -> None:
    assert nearest("litert-2-ref", ["litert-2.4-ref", "litert-2.0-ref"]) == ("litert-2.4-ref", "litert-2.0-ref")
    assert nearest("TFLM", ["tflm", "tflm-2"]) == ("tflm",)
    assert nearest("", ["tflm"]) == nearest("tflm", []) == ()


def test_an_option_of_other_verbs_is_not_taken_for_help() -> None:
    assert "--help'?" not in tflq("doctor --html x.html").stderr
    assert "Did you mean '--help'?" in tflq("doctor --hlep").stderr
