"""`tflq/engine/kernels/sigmoids.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build

CODES = {"uint8": np.arange(256, dtype=np.uint8), "int8": np.arange(-128, 128, dtype=np.int8)}


@pytest.mark.parametrize("kind", CODES)
@pytest.mark.parametrize(("scale", "zero_point"), [(0.0123, 7), (1 / 300, 20), (0.5, 0)])
def test_any_scale_of_the_output(kind: str, scale: float, zero_point: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    model = build("LOGISTIC", [T(kind, (256,), 0.07, 11)], [T(kind, (256,), scale, zero_point)])
    report = tflq.verify(model, against="litert-xnnpack", inputs=[CODES[kind]])
    assert (report.verdict.value, report.compared) == ("same", 256)
