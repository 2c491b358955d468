"""`tflq reduce`: files that show the difference again, by the line that it prints."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from support import suites
from tflq.engine.api.files import load
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.face.cli.main import cli
from tflq.model.ir import view
from tflq.model.ir.schema import data_text

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def tflq(*words: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


def test_a_dump_is_reduced_and_the_printed_line_shows_it(tmp_path: Path) -> None:
    model = load(MODEL)
    graph = view(model)
    value = np.random.default_rng(5).integers(-128, 128, graph.tensors[graph.inputs[0]].shape).astype(np.int8)
    trace = run(make_plan(model, PROFILES["litert-ref"]), {graph.inputs[0]: value}, keep_all=True)
    arrays = {str(t): np.array(v) for t, v in trace.values.items()}
    faulty = arrays[str(graph.op(1).outputs[0])]
    faulty[tuple(n // 2 for n in faulty.shape)] ^= 1
    np.savez(tmp_path / "dump.npz", **arrays)
    result = tflq("reduce", MODEL, "--dump", tmp_path / "dump.npz", "-o", tmp_path / "small")
    assert result.exit_code == 0, result.output
    (line,) = re.findall(r"Next: tflq (.*)", result.stdout)
    assert tflq(*shlex.split(line)).exit_code == 1
    assert (tmp_path / "small.expected.npz").exists()


def test_the_document_follows_its_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    recorded = suites.ROOT / "golden/singleop/recorded"
    result = tflq(
        "reduce",
        suites.ROOT / "golden/singleop/models/tie_conv_i8_0.tflite",
        "-o",
        tmp_path / "small",
        "--json",
        "--dump",
        recorded / "tie_conv_i8_0@litert-opt.npz",
        "--inputs",
        recorded / "tie_conv_i8_0.npz",
    )
    found = json.loads(result.stdout)
    jsonschema.validate(found, json.loads(data_text("reduce.schema.json")))
    assert (found["operators"], found["differing"]) == ([0], 1)
    assert found["outputs"][0]["shape"] == [1, 1, 1, 1]
    program, *line = shlex.split(found["next"])
    assert program == "tflq"
    assert tflq(*line).exit_code == 1


@pytest.mark.parametrize("code", [1, 6])
def test_a_check_that_always_differs_leaves_one_operator(tmp_path: Path, code: int) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit({code})' {{model}} {{inputs}}"
    result = tflq("reduce", MODEL, "--check", command, "-o", tmp_path / "small")
    assert result.exit_code == 0, result.output
    assert "1 operator(s)" in result.stdout


def test_a_check_that_never_differs_is_refused(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -c 'raise SystemExit(0)' {{model}}"
    assert tflq("reduce", MODEL, "--check", command, "-o", tmp_path / "small").exit_code == 2


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("-c 'raise SystemExit(1)'", "needs {model}"),
        ("""-c 'raise SystemExit("no such board")' {model} ; exit 3""", "got 3 (no such board)"),
    ],
)
def test_a_check_that_cannot_work_is_refused(tmp_path: Path, ending: str, said: str) -> None:
    result = tflq("reduce", MODEL, "--check", f"{shlex.quote(sys.executable)} {ending}", "-o", tmp_path / "small")
    assert result.exit_code == 2
    assert said in result.stderr


def test_dump_or_check_is_needed(tmp_path: Path) -> None:
    assert tflq("reduce", MODEL, "-o", tmp_path / "small").exit_code == 2
