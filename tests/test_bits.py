"""Whole models against recorded outputs of the real interpreter, bit by bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tflq
from support import suites
from support.each import each

SINGLE = suites.ROOT / "golden" / "singleop"
INDEX = json.loads((SINGLE / "index.json").read_text())
RECORDED = sorted((suites.ROOT / "golden" / "recorded").glob("*.npz"))
REAL = list(suites.suite_models("real"))
ZIP = list(suites.suite_models("zip"))


def assert_same_bits(model: Path, golden: Path) -> None:
    """Run every recorded sample in a fresh interpreter; each output must have the golden's type, shape and bytes."""
    recorded = dict(np.load(golden, allow_pickle=False))
    for sample in sorted({key.split("_")[0] for key in recorded}):
        interpreter = tflq.Interpreter(model_path=str(model))
        for i, detail in enumerate(interpreter.get_input_details()):
            value = recorded[f"{sample}_in{i}"]
            if tuple(detail["shape"]) != value.shape:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        for i, detail in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], recorded[f"{sample}_in{i}"])
        interpreter.invoke()
        for i, detail in enumerate(interpreter.get_output_details()):
            got, want = np.asarray(interpreter.get_tensor(detail["index"])), recorded[f"{sample}_out{i}"]
            assert got.shape == want.shape
            if want.dtype.kind == "S":  # strings come back as bytes objects
                assert [bytes(value) for value in got.ravel()] == want.ravel().tolist()
                continue
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(_bits(got), _bits(want), err_msg=f"{sample} output {i} of {model.name}")


def _bits(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Floats as their bit patterns with every NaN alike; anything else as it is."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), np.array(np.nan, array.dtype), array).view(f"u{array.dtype.itemsize}")


@pytest.mark.usefixtures("either_way")
@each("entry", INDEX, ids=[Path(e["model"]).stem for e in INDEX])
def test_single_operators(entry: dict[str, str]) -> None:
    assert_same_bits(SINGLE / entry["model"], SINGLE / entry["golden"])


@pytest.mark.parametrize("path", RECORDED, ids=[path.stem for path in RECORDED])
def test_trained_networks(path: Path) -> None:
    report = tflq.verify(suites.ROOT / "golden" / "models" / f"{path.stem}.tflite", against=path)
    assert report.verdict.value == "same", report.first_divergent or report.outputs


@pytest.mark.parametrize("case", suites.parameters(REAL))
def test_real_models(case: suites.Case) -> None:
    assert_same_bits(case.model, case.golden)


@pytest.mark.parametrize("case", suites.parameters(ZIP))
def test_converted_operator_tests(case: suites.Case) -> None:
    assert_same_bits(case.model, case.golden)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("case", suites.parameters(ZIP[::8]))
def test_converted_operator_tests_in_small_pieces(case: suites.Case) -> None:
    assert_same_bits(case.model, case.golden)


def test_the_shared_suites_are_there(shared: Path) -> None:
    """Report, by its skip, that the suites above were not run."""
    assert len(REAL) == 128
    assert len(ZIP) == 943
