"""Files that LiteRT and TensorFlow Lite refuse to load, and that TensorFlow Lite Micro takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.running import run_once
from support.single_op import T, build, litert
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError, UnsupportedError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Buffer

LITERT = ("litert-ref", "litert-opt", "litert-xnnpack", "litert-1.0-ref", "tflite-2.14-ref", "spec")


def dequantizing(scale: Any, axis: int) -> bytes:
    x = T("int8", (2, 3), scale, [0] * np.size(scale), axis)
    return build("DEQUANTIZE", [x], [T("float32", (2, 3))], version=2)


def allocate(content: bytes, profile: str) -> None:
    Interpreter(model_content=content, profile=profile).allocate_tensors()


@pytest.mark.parametrize(("scale", "axis"), [([0.5], 2), ([0.5], -1), ([0.5, 0.25], 1)])
def test_scales_that_do_not_fit_the_shape_are_refused(scale: Any, axis: int) -> None:
    content = dequantizing(scale, axis)
    for profile in LITERT:
        with pytest.raises(UnsupportedError, match="dimension"):
            allocate(content, profile)
    if np.size(scale) == 1:
        allocate(content, "tflm")
    with pytest.raises(ValueError, match=r"quantized_dimension|num_scales"):
        litert(content, [np.zeros((2, 3), np.int8)])


@pytest.mark.parametrize(("scale", "axis"), [([0.5], 1), ([0.5, 0.25, 1.0], 1)])
def test_scales_that_fit_are_taken(scale: Any, axis: int) -> None:
    content = dequantizing(scale, axis)
    for profile in LITERT:
        allocate(content, profile)
    assert litert(content, [np.zeros((2, 3), np.int8)])


def adding(extra: int) -> bytes:
    """Return an ADD whose constant's buffer has `extra` bytes more than the constant."""
    x = T("float32", (2, 3))
    model = read(build("ADD", [x, replace(x, value=np.ones((2, 3)))], [x]))
    data = model.buffers[1].data
    assert data is not None
    changed = Buffer(np.resize(data, len(data) + extra))
    return bytes(write(replace(model, buffers=(model.buffers[0], changed))))


@pytest.mark.parametrize("extra", [1, 4])
def test_what_follows_a_constant_is_ignored_since_litert(extra: int) -> None:
    content = adding(extra)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (made,) = litert(content, [x])
    assert (made == x + 1).all()
    for profile in ("litert-ref", "litert-xnnpack", "litert-1.0-ref", "tflm"):
        allocate(content, profile)
    for profile in ("tflite-2.14-ref", "tflite-2.7-opt"):
        with pytest.raises(UnsupportedError, match="more bytes than the tensor"):
            allocate(content, profile)


def test_a_buffer_that_is_too_short_is_refused() -> None:
    with pytest.raises(ModelError, match="buffer does not fit the shape"):
        allocate(adding(-4), "litert-ref")
    with pytest.raises(ValueError, match="required_bytes"):
        litert(adding(-4), [np.zeros((2, 3), np.float32)])


@pytest.mark.parametrize("function", [4, 5, 9])
def test_a_fused_activation_that_is_no_clamp_counts_as_none(function: int) -> None:
    x = T("float32", (2, 3))
    content = build("ADD", [x, x], [x], ("AddOptions", {"fused_activation_function": function}))
    values = np.array([[-9, 2, 3e5], [0, 1, -1e9]], np.float32)
    (made,) = litert(content, [values, values])
    assert (made == 2 * values).all()
    (ours,) = run_once(Interpreter(model_content=content), [values, values])
    assert (ours == 2 * values).all()
