"""`tflq explain` and `tflq fit` on what `tflq run --all-tensors` writes under another profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import suites
from click.testing import CliRunner

from tflq.cli.main import cli
from tflq.ir.schema import data_text

MODEL = str(suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "dump.npz"
    arguments = ["run", MODEL, "--profile", "litert-xnnpack", "--all-tensors", "-o", str(path)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    return path


def document(verb: str, dump: Path, *options: str) -> tuple[int, dict[str, Any]]:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    done = CliRunner().invoke(cli, [verb, MODEL, "--dump", str(dump), *options, "--json"])
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, json.loads(data_text(f"{verb}.schema.json")))
    return done.exit_code, found


def test_the_runtime_that_made_the_dump_is_among_the_causes(dump: Path) -> None:
    code, found = document("explain", dump)
    assert (code, found["verdict"], found["first_divergent"]) == (1, "differs", 0)
    assert "litert-xnnpack" in [cause["name"] for cause in found["explanation"]["exact"]]


def test_its_own_profile_finds_nothing(dump: Path) -> None:
    code, found = document("explain", dump, "--profile", "litert-xnnpack")
    assert (code, found["verdict"], found["explanation"]) == (0, "same", None)


def test_fit_names_the_profile(dump: Path) -> None:
    _, found = document("fit", dump)
    assert found["best"] == "litert-xnnpack"
    assert found["unexplained"] == []
