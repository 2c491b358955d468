"""Models run under a profile, and compared bit by bit with what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.engine.profiles import Profile

Array = np.ndarray[Any, Any]


def run(model: Any, inputs: Sequence[Array], profile: str | Profile) -> list[Array]:
    """Outputs of tflq under that profile, in its order of inputs and outputs."""
    return run_once(tflq.Interpreter(model_content=model, profile=profile), inputs)


def run_once(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    """Prepare an interpreter, tflq's or LiteRT's, for the shapes of the inputs, and run it."""
    details = interpreter.get_input_details()
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != np.shape(value):
            interpreter.resize_tensor_input(detail["index"], np.shape(value))
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


def run_each(interpreter: Any, rows: Iterable[Array]) -> list[Array]:
    """Run an interpreter of one input and one output on rows, one after the other; its state lasts."""
    interpreter.allocate_tensors()
    (given,), (wanted,) = interpreter.get_input_details(), interpreter.get_output_details()
    made = []
    for row in rows:
        interpreter.set_tensor(given["index"], row)
        interpreter.invoke()
        made.append(np.array(interpreter.get_tensor(wanted["index"])))
    return made


def run_reals(interpreter: Any, values: Iterable[Array]) -> list[Array]:
    """Run an interpreter on reals, as codes where its inputs are quantized."""
    details = interpreter.get_input_details()
    return run_once(interpreter, [as_codes(value, detail) for value, detail in zip(values, details, strict=True)])


def as_codes(value: Array, detail: Mapping[str, Any]) -> Array:
    """Return reals as the codes of a tensor that an interpreter describes; as they are if it has no scale."""
    scale, zero_point = detail["quantization"]
    if value.dtype == detail["dtype"] or not scale:
        return value
    limits = np.iinfo(detail["dtype"])
    codes: Array = np.clip(np.rint(value / np.float64(scale)) + zero_point, limits.min, limits.max)
    return codes.astype(detail["dtype"])


def litert(model: bytes, resolver: str = "BUILTIN_REF") -> Any:
    """Return LiteRT's interpreter of a model; skip the test without LiteRT."""
    runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    return runtime.Interpreter(
        model_content=model, num_threads=1, experimental_op_resolver_type=runtime.OpResolverType[resolver]
    )
