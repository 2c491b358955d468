"""LOG_SOFTMAX of `tflq/engine/kernels/softmax.py` against live LiteRT: rows of any length."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build


@pytest.mark.slow
@pytest.mark.parametrize("length", [*range(1, 18), 31, 100, 257, 1000])
def test_rows(length: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(length)
    x = (rng.standard_normal((5, length)) * rng.choice([1, 30])).astype(np.float32)
    model = build("LOG_SOFTMAX", [T("float32", x.shape)], [T("float32", x.shape)], ("LogSoftmaxOptions", {}))
    report = tflq.verify(model, against="litert-opt", inputs=[x])
    assert (report.verdict.value, report.compared) == ("same", x.size)
