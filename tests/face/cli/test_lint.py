"""`tflq lint`: exit codes, the table, the document, and the corrected file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from support import commands, suites
from support.commands import validate
from tflq.engine.api.files import load, save
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


def tflq(*words: object) -> Result:
    return commands.tflq("lint", *words)


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """The first bias scale is twice what it should be."""
    model = load(MODEL)
    graph = view(model)
    bias = next(o.inputs[2] for o in graph.ops if len(o.inputs) == 3)
    tensors = list(graph.tensors)
    quantization = tensors[bias].quantization
    assert quantization is not None
    doubled = replace(quantization, scale=quantization.scale * np.float32(2))
    tensors[bias] = replace(tensors[bias], quantization=doubled)
    save(replace(model, subgraphs=(replace(graph.record, tensors=tuple(tensors)),)), tmp_path / "spoilt.tflite")
    return tmp_path / "spoilt.tflite"


def test_nothing_found() -> None:
    result = tflq(MODEL, "--target", "litert")
    assert result.exit_code == 0
    assert "nothing found" in result.stdout


def test_a_finding_is_a_difference_and_names_the_fix(spoilt: Path) -> None:
    result = tflq(spoilt)
    assert result.exit_code == 1
    assert "0 errors, 1 warning" in result.stdout
    assert "bias-scale" in result.stdout
    assert "--fix" in result.stdout


def test_the_document_follows_its_schema(spoilt: Path, tmp_path: Path) -> None:
    result = tflq(spoilt, "--json", "--fix", tmp_path / "fixed.tflite")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    validate(document, "lint")
    (finding,) = document["findings"]
    assert (finding["rule"], finding["fixable"]) == ("bias-scale", True)
    assert document["fixed"]["corrected"] == 1
    assert tflq(tmp_path / "fixed.tflite").exit_code == 0


def test_an_unknown_target_is_misuse() -> None:
    assert tflq(MODEL, "--target", "toaster").exit_code == 2
