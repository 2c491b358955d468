"""`tflq/engine/kernels/mean_sum.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((16, 768), [1]), ((3, 1, 4096), [2]), ((1, 257), [1]), ((5, 7, 9), [1, 2]), ((5, 7, 9), [0, 2]), ((6, 1), [1])],
)
def test_sums_of_rows(shape: tuple[int, ...], axes: list[int]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32) ** 2
    y = [1 if i in axes else size for i, size in enumerate(shape)]
    operands = [T("float32", shape), T("int32", (len(axes),), value=axes)]
    model = build("MEAN", operands, [T("float32", y)], ("ReducerOptions", {"keep_dims": True}))
    report = tflq.verify(model, against="litert-opt", inputs=[x])
    assert (report.verdict.value, report.compared) == ("same", int(np.prod(y)))


@pytest.mark.slow
@pytest.mark.parametrize("op", ["MEAN", "SUM"])
@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2], [0, 1, 2]])
def test_sums_begin_with_the_first_element(op: str, axes: list[int]) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    shape = (3, 2, 5)
    y = [1 if i in axes else size for i, size in enumerate(shape)]
    operands = [T("float32", shape), T("int32", (len(axes),), value=axes)]
    model = build(op, operands, [T("float32", y)], ("ReducerOptions", {"keep_dims": True}))
    report = tflq.verify(model, against="litert-opt", inputs=[np.full(shape, -0.0, np.float32)])
    assert (report.verdict.value, report.compared) == ("same", int(np.prod(y)))
