"""`tflq/engine/kernels/reductions.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support import single_op
from support.processors import own
from support.running import run_once
from support.single_op import T, build
from tflq.engine.api.interpreter import Interpreter

CODES = {"uint8": np.arange(256, dtype=np.uint8), "int8": np.arange(-128, 128, dtype=np.int8)}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_codes_move_whatever_the_scales_are(kind: str, op: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    codes = np.random.default_rng(3).permutation(CODES[kind]).reshape(64, 4)
    x, axes = T(kind, codes.shape, 0.07, 11), T("int32", (1,), value=[1])
    model = build(op, [x, axes], [T(kind, (64, 1), 0.02, 100)], ("ReducerOptions", {"keep_dims": True}), 2)
    report = tflq.verify(model, against="litert-xnnpack", inputs=[codes])
    assert (report.verdict.value, report.compared) == ("same", 64)


#: Infinities, NaN, zeros of both signs and subnormal numbers.
VALUES = np.array([0.0, -0.0, np.nan, 1, -1, np.inf, -np.inf, 1e-40, -1e-40], np.float32)


@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_floats_have_the_bits_of_litert(op: str) -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape = tuple(int(n) for n in rng.choice([1, 2, 3, 7, 16, 17, 70], rng.integers(1, 4)))
        axes = np.sort(rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False)).astype(np.int32)
        x = rng.choice(VALUES, shape, p=rng.dirichlet(np.full(len(VALUES), 0.3)))
        out = tuple(n for axis, n in enumerate(shape) if axis not in axes)
        options = ("ReducerOptions", {"keep_dims": False})
        model = build(op, [T("float32", shape), T("int32", axes.shape, value=axes)], [T("float32", out)], options)
        (want,) = single_op.litert(model, [x], "BUILTIN")
        (got,) = run_once(Interpreter(model_content=model, profile=own("litert-xnnpack")), [x])
        assert single_op._agree(got, want).all(), (shape, axes)
