"""The public `tflq.explain` and `tflq.fit`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.errors import UnknownNameError
from tflq.model.ir import view

MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


@pytest.fixture(scope="module")
def values() -> dict[int, np.ndarray]:
    model = tflq.load(MODEL)
    tensor = view(model).inputs[0]
    image = np.random.default_rng(4).integers(-128, 128, view(model).tensors[tensor].shape).astype(np.int8)
    return dict(run(make_plan(model, PROFILES["litert-ref"]), {tensor: image}, keep_all=True).values)


def test_arrays_a_path_and_a_model_in_memory_are_taken(values: dict[int, np.ndarray], tmp_path: Path) -> None:
    assert tflq.explain(MODEL, values).verdict == "same"
    entries = {str(t): v for t, v in values.items()}
    np.savez(tmp_path / "dump.npz", **entries)  # type: ignore[arg-type]
    assert tflq.explain(tflq.load(MODEL), tmp_path / "dump.npz").verdict == "same"
    assert tflq.explain(MODEL, entries, mode="cumulative").verdict == "same"


@pytest.mark.slow
def test_a_wrong_element_is_found(values: dict[int, np.ndarray]) -> None:
    tensor = view(tflq.load(MODEL)).op(4).outputs[0]
    wrong = {**values, tensor: values[tensor] ^ np.int8(1)}
    found = tflq.explain(MODEL, wrong)
    assert found.first is not None
    assert (found.verdict, found.first.index) == ("differs", 4)
    matrix = tflq.fit(MODEL, wrong).matrix
    assert set(PROFILES) < set(matrix)
    assert matrix["litert-ref"][4] == (0, values[tensor].size)
    assert matrix["litert-ref"][6] == (values[view(tflq.load(MODEL)).op(6).outputs[0]].size,) * 2


def test_an_unknown_mode_is_refused(values: dict[int, np.ndarray]) -> None:
    with pytest.raises(UnknownNameError):
        tflq.explain(MODEL, values, mode="end to end")
