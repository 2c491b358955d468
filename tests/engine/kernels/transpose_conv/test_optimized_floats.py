"""`tflq/engine/kernels/transpose_conv.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "depth", "units", "kernel", "stride"),
    [
        ((8, 8), 48, 24, 2, 2),
        ((5, 7), 3, 5, 3, 2),
        ((1, 1), 17, 6, 4, 4),
        ((16, 16), 1, 1, 3, 1),
        ((9, 4), 700, 9, 2, 1),
    ],
)
@pytest.mark.parametrize("padding", [0, 1])
def test_floats(size: tuple[int, int], depth: int, units: int, kernel: int, stride: int, padding: int) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(depth)
    out = [each * stride if padding == 0 else (each - 1) * stride + kernel for each in size]
    x, y = (2, *size, depth), (2, *out, units)
    operands = [
        T("int32", (4,), value=y),
        T("float32", (units, kernel, kernel, depth), value=rng.standard_normal((units, kernel, kernel, depth))),
        T("float32", x),
        T("float32", (units,), value=rng.standard_normal(units)),
    ]
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, "fused_activation_function": padding}
    model = build("TRANSPOSE_CONV", operands, [T("float32", y)], ("TransposeConvOptions", options), version=4)
    report = tflq.verify(model, against="litert-opt", inputs=[rng.standard_normal(x).astype(np.float32)])
    assert (report.verdict.value, report.compared) == ("same", int(np.prod(y)))
