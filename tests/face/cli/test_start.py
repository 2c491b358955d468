"""The first screen, verbs by task, and words that stand for verbs."""

from __future__ import annotations

from importlib import metadata

import pytest

from support import suites
from support.commands import tflq
from tflq.engine.profiles import by_name
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.face.cli.main import TASKS, VERBS, overview, with_verb

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")


def test_every_verb_has_one_task() -> None:
    listed = [verb for verbs in TASKS.values() for verb in verbs]
    assert sorted(listed) == sorted(VERBS)


def test_installed_runtimes_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"tflq": "9.9", "tflite-micro": "1.2"}

    def version(name: str) -> str:
        if name in versions:
            return versions[name]
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    assert "Installed runtimes: tflite-micro 1.2\n" in overview()
    del versions["tflite-micro"]
    assert "Installed runtimes: none (pip install ai-edge-litert" in overview()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], []),
        (["version"], ["--version"]),
        (["m.tflite", "--op", "1"], ["inspect", "m.tflite", "--op", "1"]),
        (["M.TFLITE"], ["inspect", "M.TFLITE"]),
        (["gemma.litertlm:1"], ["inspect", "gemma.litertlm:1"]),
        (["verify", "m.tflite"], ["verify", "m.tflite"]),
        (["-V"], ["-V"]),
    ],
)
def test_words_stand_for_verbs(words: list[str], meant: list[str]) -> None:
    assert with_verb(words) == meant


def test_a_model_alone_is_inspected() -> None:
    assert tflq(MODEL).stdout == tflq("inspect", MODEL).stdout
    missing = tflq("missing.tflite")
    assert (missing.exit_code, "missing.tflite" in missing.stderr) == (2, True)


def test_the_version_is_a_word_too() -> None:
    assert tflq("version").stdout == tflq("--version").stdout


def test_a_capital_is_answered() -> None:
    assert "Did you mean verify?" in tflq("VERIFY").stderr


@pytest.mark.parametrize("name", ["LiteRT-Ref", "TFLM", "Litert-REF+single-rounding", "LITERT-2.1-ref"])
def test_profiles_are_found_in_any_case(name: str) -> None:
    assert by_name(name) == by_name(name.lower())


def test_runtimes_are_found_in_any_case() -> None:
    assert runtime_by_name("LiteRT-Ref").name == "litert-ref"


@pytest.mark.parametrize("words", [["why"], ["profiles", "effects"], ["fit"], []])
def test_help_of_a_verb_is_its_help(words: list[str]) -> None:
    told = tflq("help", *words)
    assert told.exit_code == 0
    assert told.stdout == tflq(*words, "--help").stdout


def test_help_of_no_verb_is_misuse() -> None:
    assert tflq("help", "nothing").exit_code == 2
