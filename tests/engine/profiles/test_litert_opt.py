"""Random quantized single operators under litert-opt against LiteRT's optimized resolver, bit by bit."""

from __future__ import annotations

import pytest

from support.live import LITERT, hold, remote

pytestmark = pytest.mark.slow

OPERATORS = [
    "ADD",
    "SUB",
    "MUL",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "TRANSPOSE_CONV",
    "BATCH_MATMUL",
    "MEAN",
    "SUM",
    "REDUCE_PROD",
    "SOFTMAX",
    "LOG_SOFTMAX",
    "LOGISTIC",
    "TANH",
    "QUANTIZE",
    "DEQUANTIZE",
    "LEAKY_RELU",
    "PRELU",
    "AVERAGE_POOL_2D",
    "RESIZE_BILINEAR",
    "L2_NORMALIZATION",
]
SEED, COUNT = 20, 500


def test_random_operators() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    runtime = remote("", LITERT, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    found = hold("litert-opt", runtime, SEED, COUNT, ("exact", "exact on the same libm"), OPERATORS)
    runtime.close()
    assert not found.differing, found.differing[0]
    assert found.same > COUNT // 2
