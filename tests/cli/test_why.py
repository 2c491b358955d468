"""`tflq why`: the answer in fifteen lines, as Markdown, and as a document."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from support import suites
from support.usage import Planted, planted
from tflq.api.files import save
from tflq.cli.main import cli
from tflq.ir.schema import data_text

SINGLE = suites.ROOT / "golden" / "singleop"
ADD = str(SINGLE / "models" / "tie_add_i8_0.tflite")
SAME = str(SINGLE / "recorded" / "tie_add_i8_0.npz")


def tflq(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def mistake() -> Planted:
    return next(one for one in planted() if one.name.startswith("BGR-1"))


@pytest.fixture
def files(tmp_path: Path, mistake: Planted) -> tuple[str, str, str]:
    """A model, the device's outputs and the inputs that were meant."""
    model, outputs, inputs = (str(tmp_path / name) for name in ("m.tflite", "out.npy", "in.npy"))
    save(mistake.model, model)
    np.save(outputs, np.concatenate([next(iter(one.values())) for one in mistake.samples]))
    np.save(inputs, np.concatenate(mistake.given))
    return model, outputs, inputs


def test_a_mistake_of_the_user_is_the_first_line(files: tuple[str, str, str]) -> None:
    model, outputs, inputs = files
    result = tflq("why", model, outputs, "--inputs", inputs)
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0]) == (1, "DIFFERS: RGB and BGR exchanged"), result.output
    assert len(lines) <= 15
    assert "the user's" in result.stdout
    assert "exchange the first and the last channel" in result.stdout


def test_the_document_follows_its_schema(files: tuple[str, str, str]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads(data_text("why.schema.json"))
    model, outputs, inputs = files
    found = json.loads(tflq("why", model, outputs, "--inputs", inputs, "--json").stdout)
    jsonschema.validate(found, schema)
    assert (found["fault"], found["causes"][0], found["mistake"]["after"]) == ("user", "RGB and BGR exchanged", 0)
    device = json.loads(tflq("why", ADD, SAME, "--json").stdout)
    jsonschema.validate(device, schema)
    assert (device["verdict"], device["fault"]) == ("same", "none")


def test_a_recording_of_the_profile_is_the_same() -> None:
    result = tflq("why", ADD, SAME)
    assert (result.exit_code, result.stdout.split(":")[0]) == (0, "SAME"), result.output


@pytest.mark.slow
def test_markdown_names_command_formula_and_versions(tmp_path: Path) -> None:
    """A wrong bit that no hypothesis explains."""
    golden = dict(np.load(SAME))
    key = next(k for k in golden if k == "s0_out0")
    golden[key].reshape(-1)[5] ^= 1
    np.savez(tmp_path / "d.npz", **golden)
    result = tflq("why", ADD, tmp_path / "d.npz", "--paste")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("### DIFFERS: ")
    for word in ("tflq why tie_add_i8_0.tflite d.npz", "-op", "tflq reduce", "expected", "NumPy"):
        assert word in result.stdout


@pytest.mark.parametrize("words", [["--paste", "--json"], ["--paste", "--verbose"]])
def test_options_that_exclude_each_other_are_refused(words: list[str]) -> None:
    assert tflq("why", ADD, "x.npz", *words).exit_code == 2


def test_missing_and_foreign_evidence_is_bad_input(tmp_path: Path) -> None:
    assert tflq("why", ADD, tmp_path / "missing.npz").exit_code == 2
    np.savez(tmp_path / "o.npz", nothing=np.zeros(3))
    assert tflq("why", ADD, tmp_path / "o.npz").exit_code in (2, 3)
    np.save(tmp_path / "o.npy", np.zeros((7, 9), np.float32))
    assert tflq("why", ADD, tmp_path / "o.npy").exit_code == 2


@pytest.mark.slow
def test_an_installed_runtime_is_evidence() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    result = tflq("why", ADD)
    assert (result.exit_code, "xnnpack" in result.stdout) == (1, True), result.output
    assert tflq("why", ADD, "runtime:litert-ref").exit_code == 0
