"""The exit code never lies: a fault has its own, and what cannot be printed changes no verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from support import suites
from support.commands import tflq, validate
from support.each import each
from tflq.face.cli.main import VERBS, cli
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "singleop" / "models" / "tie_conv_i8_0.tflite"
DEVICE = suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0@litert-opt.npz"
INPUTS = suites.ROOT / "golden" / "singleop" / "recorded" / "tie_conv_i8_0.npz"
DIFFERS = ("explain", MODEL, "--dump", DEVICE, "--inputs", INPUTS)

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are POSIX")


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("\x1b]0;name\x07")

    monkeypatch.setattr("tflq.comparison.inspection.operators.inspect", broken)


@pytest.mark.usefixtures("fault")
def test_a_fault_is_one_line_and_seventy() -> None:
    result = tflq("inspect", MODEL)
    assert (result.exit_code, result.stdout) == (70, "")
    (line,) = result.stderr.splitlines()
    assert line.isprintable()
    assert "KeyError at test_exits.py:" in line
    assert "please report it" in line
    assert "--debug" in line


@pytest.mark.usefixtures("fault")
def test_a_fault_as_a_document() -> None:
    result = tflq("inspect", MODEL, "--json")
    found = json.loads(result.stdout)
    validate(found, "error")
    assert (result.exit_code, found["exit_code"], found["kind"]) == (70, 70, "KeyError")
    assert "please report it" in found["message"]


@pytest.mark.usefixtures("fault")
def test_debug_adds_the_traceback() -> None:
    result = tflq("inspect", MODEL, "--debug")
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert all(line.isprintable() for line in result.stderr.splitlines())


def test_debug_adds_it_to_foreseen_errors_too() -> None:
    assert "Traceback" in tflq("inspect", "missing.tflite", "--debug").stderr
    assert "Traceback" not in tflq("inspect", "missing.tflite").stderr


def commands() -> Iterator[tuple[str, ...]]:
    """Every verb; of a group of verbs, each of its members."""
    context = click.Context(cli)
    for verb in VERBS:
        command = cli.get_command(context, verb)
        yield from ((verb, name) for name in command.commands) if isinstance(command, click.Group) else [(verb,)]


@each("words", tuple(commands()), ids=" ".join)
def test_every_verb_knows_debug(words: tuple[str, ...]) -> None:
    help_word = "--help-all" if words == ("quantize",) else "--help"
    assert "--debug" in tflq(*words, help_word).stdout


def test_arguments_are_shown_escaped() -> None:
    for words in (
        ["\x1b]0;x\x07"],
        ["inspect", "\x1b[31m"],
        ["inspect", MODEL, "--op", "\x1b[31m"],
        ["inspect", MODEL, "-\x1b"],
        ["run", MODEL, "--profile", "\x1b[31m"],
        ["verify", MODEL, "--mode", "\x07"],
        ["run", MODEL, "--inputs", "a\0b"],
    ):
        result = tflq(*words)
        assert (result.exit_code, "\x1b" in result.output, "\x07" in result.output) == (2, False, False)


def start(*words: object, **streams: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tflq.face.cli.main", *map(str, words)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": suites.ROOT, **streams}
    return subprocess.Popen(command, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    ("words", "code"),
    [(DIFFERS, 1), (("inspect", MODEL), 0), (("--help",), 0), (("inspect", "--help"), 0)],
    ids=("differs", "same", "help", "verb"),
)
def test_a_reader_that_leaves_changes_no_exit_code(words: tuple[object, ...], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with start(*words, stdout=writer) as child:
        os.close(writer)
        _, said = child.communicate()
    assert (child.returncode, said) == (code, b"")


@pytest.mark.slow
@posix
@pytest.mark.parametrize(
    "words", [DIFFERS, ("inspect", MODEL), ("inspect", MODEL, "--json"), ("inspect", "no"), ("--help",)]
)
def test_a_full_standard_output_is_one_line(words: tuple[object, ...]) -> None:
    with open("/dev/full", "wb") as full, start(*words, stdout=full) as child:
        _, said = child.communicate()
    assert (child.returncode, len(said.splitlines())) == (2, 1), said
    assert b"No space left" in said or b"No such file" in said


@posix
@pytest.mark.parametrize("json_wanted", [(), ("--json",)])
def test_closed_streams_are_no_fault(json_wanted: tuple[str, ...], tmp_path: Path) -> None:
    command = ["bash", "-c", f'exec "$@" {">&-" if not json_wanted else ">&- 2>&-"}', "-"]
    with subprocess.Popen(
        [*command, sys.executable, "-m", "tflq.face.cli.main", "inspect", str(MODEL), *json_wanted],
        stderr=subprocess.PIPE,
        cwd=suites.ROOT,
    ) as child:
        _, said = child.communicate()
    assert child.returncode == 2
    assert said.count(b"\n") == (0 if json_wanted else 1), said


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_takes_any_name(encoding: str, tmp_path: Path) -> None:
    from dataclasses import replace

    from tflq.engine.api.files import load, save

    model = load(MODEL)
    graph = view(model)
    tensors = (replace(graph.tensors[0], name="größe\udcff\u202e"), *graph.tensors[1:])
    save(replace(model, subgraphs=(replace(graph.record, tensors=tensors),)), tmp_path / "m.tflite")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for words in (("inspect", tmp_path / "m.tflite"), ("inspect", tmp_path / "m.tflite", "--json")):
        with start(*words, env=environment) as child:
            printed, said = child.communicate()
        assert (child.returncode, said) == (0, b"")
        text = printed.decode(encoding)
        assert "\\xff" in text
        if "--json" in words:
            assert json.loads(text)["tensors"][0]["name"].startswith("größe")
