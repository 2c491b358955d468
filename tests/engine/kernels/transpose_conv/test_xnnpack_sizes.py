"""TRANSPOSE_CONV by XNNPACK with a shape operand that does not belong to the input: the input's size counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.graphs import Graph, Op, build
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, litert
from tflq.errors import ModelError

Array = np.ndarray[Any, Any]


def model(rng: np.random.Generator, kind: str, padding: int) -> tuple[bytes, Array, tuple[int, ...], tuple[int, ...]]:
    """A model, its input, the shape that it asks for, and the one that the input gives."""
    kernel, stride, size = (rng.integers(1, [5, 5]) for _ in range(3))
    depth, out = (int(n) for n in rng.integers(1, 5, 2))
    target = (size - 1) * stride + kernel + rng.integers(0, 4, 2)
    given = (size - 1) * stride + kernel + (target - kernel) % stride
    asked = (1, *(int(n) for n in target), out)
    floats = kind in ("float32", "hybrid")
    weights = (out, *(int(k) for k in kernel), depth)
    if kind == "float32":
        w = T("float32", weights, value=rng.standard_normal(weights).astype(np.float32))
    else:
        codes = "uint8" if kind == "uint8" else "int8"
        value = rng.integers(1, 127, weights).astype(codes)
        scales = [0.01] * (out if kind == "hybrid" else 1)
        w = T(codes, weights, scale=scales, zero_point=[0] * len(scales), value=value)
    shape = (1, *(int(n) for n in size), depth)
    if floats:
        x, y = T("float32", shape), T("float32", asked)
        bias = T("float32", (out,), value=rng.standard_normal(out).astype(np.float32))
        fed: Array = rng.standard_normal(shape).astype(np.float32)
    else:
        x, y = T(kind, shape, scale=[0.05], zero_point=[3]), T(kind, asked, scale=[0.06], zero_point=[5])
        bias = T("int32", (out,), scale=[0.0005], zero_point=[0], value=rng.integers(-500, 500, out).astype(np.int32))
        fed = rng.integers(0, 127, shape).astype(kind)
    options = {
        "padding": padding,
        "stride_h": int(stride[0]),
        "stride_w": int(stride[1]),
        "fused_activation_function": 0,
    }
    wanted = T("int32", (4,), value=np.array(asked, np.int32))
    op = Op("TRANSPOSE_CONV", [1, 2, 0, 3], [4], ("TransposeConvOptions", options), version=3)
    file = build(Graph([x, wanted, w, bias, y], [0], [4], [op]))
    return file, fed, asked, (1, *(int(n) for n in given), out)


@has_xnnpack_profile
@each("seed", range(10))
@each("kind", ["int8", "uint8", "float32", "hybrid"])
def test_the_input_decides_the_size(kind: str, seed: int) -> None:
    file, x, asked, given = model(np.random.default_rng([9, seed]), kind, padding=1)
    (got,) = run(file, [x], XNNPACK or "")
    assert got.shape == given
    assert_same([got], litert(file, [x], "BUILTIN"), f"{asked}")
    if asked != given:
        with pytest.raises(ModelError, match="image size"):
            run(file, [x], "litert-opt")
