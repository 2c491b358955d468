"""DEQUANTIZE of int8 constants under XNNPACK: the optimized kernel, also where no operator of XNNPACK reads them."""

from __future__ import annotations

import numpy as np

from support.each import each
from support.graphs import Graph, Op, build
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, litert


@has_xnnpack_profile
@each("seed", range(6))
@each("kind", ["int8", "uint8"])
@each("reader", ["ADD", "POW"])
def test_constants(kind: str, reader: str, seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    low = -128 if kind == "int8" else 0
    codes = rng.integers(low, low + 256, (3, 11)).astype(kind)
    scale, zero = float(rng.uniform(0.001, 0.1)), int(rng.integers(low, low + 256))
    real = [T("float32", (3, 11)), T("float32", (3, 11)), T("float32", (3, 11))]
    tensors = [T(kind, (3, 11), scale=[scale], zero_point=[zero], value=codes), *real]
    options = ("AddOptions", {"fused_activation_function": 0}) if reader == "ADD" else None
    file = build(Graph(tensors, [2], [3], [Op("DEQUANTIZE", [0], [1], version=2), Op(reader, [1, 2], [3], options)]))
    x = np.full((3, 11), 0 if reader == "ADD" else 1, np.float32)  # the sum and the power are the constant
    got, want = run(file, [x], XNNPACK or ""), litert(file, [x], "BUILTIN")
    assert_same(got, want, f"{scale} {zero}")
