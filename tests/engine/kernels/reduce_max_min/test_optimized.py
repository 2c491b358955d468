"""`tflq/engine/kernels/reduce_max_min/optimized.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.each import each
from support.single_op import T, build

SHAPES = [((4, 6), (1,)), ((4, 6), (0, 1)), ((2, 3, 4, 5), (1, 3)), ((40,), (0,))]


@each("profile", ["litert-ref", "litert-opt"])
@each("op", ["REDUCE_MAX", "REDUCE_MIN"])
@each(("shape", "axes"), SHAPES)
def test_zeros_of_both_signs_and_nan(shape: tuple[int, ...], axes: tuple[int, ...], op: str, profile: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(len(shape))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    operands = [T("float32", shape), T("int32", (len(axes),), value=np.array(axes, np.int32))]
    model = build(op, operands, [T("float32", kept)], ("ReducerOptions", {"keep_dims": True}))
    zeros = rng.choice(np.array([0.0, -0.0], np.float32), shape)
    numbers = rng.choice(np.array([np.nan, 1.5, -2.5], np.float32), shape)
    samples = np.concatenate([zeros[None], numbers[None]])
    assert tflq.verify(model, against=profile, inputs=[[x] for x in samples]).verdict.value == "same"
