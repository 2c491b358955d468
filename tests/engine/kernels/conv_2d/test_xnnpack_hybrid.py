"""`tflq/engine/kernels/conv_2d_xnnpack.py` against live LiteRT."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import tflq
from support.single_op import T, build

#: The options' values of `padding`.
SAME, VALID = 0, 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "stride", "filters", "depth"),
    [((1, 1), 1, 3, 5), ((1, 1), 2, 3, 5), ((1, 1), 1, 1, 1), ((1, 2), 1, 3, 5), ((1, 1), 1, 2, 1)],
)
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_pointwise_convolutions_quantize_each_pixel(
    kernel: tuple[int, int], stride: int, filters: int, depth: int, padding: int
) -> None:
    """Pixels of very different magnitudes, in two images."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((2, 4, 6, depth)) * np.exp2(rng.integers(-6, 6, (2, 4, 6, 1)))).astype(np.float32)
    shape = (filters, *kernel, depth)
    w = T("int8", shape, [0.25] * filters, [0] * filters, value=rng.integers(-127, 128, shape), axis=0)
    bias = T("float32", (filters,), value=rng.standard_normal(filters))
    width = 6 - (kernel[1] - 1) * (padding == VALID)
    y = T("float32", (2, -(-4 // stride), -(-width // stride), filters))
    options = {"padding": padding, "stride_h": stride, "stride_w": stride}
    model = build("CONV_2D", [T("float32", x.shape), w, bias], [y], ("Conv2DOptions", options), 5)
    report = tflq.verify(model, against="litert-xnnpack", inputs=[x])
    assert (report.verdict.value, report.compared) == ("same", prod(y.shape))
