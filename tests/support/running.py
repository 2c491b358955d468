"""Models run under a profile, and compared bit by bit with what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tflq
from tflq.engine.profiles import Profile

Array = np.ndarray[Any, Any]


def run(model: Any, inputs: list[Array], profile: str | Profile) -> list[Array]:
    """Outputs of tflq under that profile, in its order of inputs and outputs."""
    interpreter = tflq.Interpreter(model_content=model, profile=profile)
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for detail, value in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def samples_of(recorded: Mapping[str, Array]) -> list[tuple[list[Array], list[Array]]]:
    """Inputs and outputs of every sample."""
    names = sorted({key.split("_")[0] for key in recorded}, key=lambda name: int(name[1:]))
    return [(_series(recorded, f"{name}_in"), _series(recorded, f"{name}_out")) for name in names]


def _series(recorded: Mapping[str, Array], prefix: str) -> list[Array]:
    count = sum(key.startswith(prefix) for key in recorded)
    return [recorded[f"{prefix}{i}"] for i in range(count)]


def assert_same(got: list[Array], want: list[Array], note: str = "") -> None:
    """Type, shape and bits; NaN equals NaN."""
    assert len(got) == len(want), note
    for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), (note, number)
        np.testing.assert_array_equal(_bits(mine), _bits(theirs), err_msg=f"{note} output {number}")


def _bits(array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), np.array(np.nan, array.dtype), array).view(f"u{array.dtype.itemsize}")
