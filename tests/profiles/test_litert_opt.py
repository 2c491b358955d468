"""Random quantized single operators under litert-opt against LiteRT's optimized resolver, bit by bit."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

from live import Resolver
from opfuzz.compare import difference_of
from opfuzz.session import draw_case, numbers, operators
from opfuzz.worker import invoke

from tflq.api.interpreter import Interpreter
from tflq.errors import TflqError

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


@pytest.fixture(scope="module")
def resolver() -> Iterator[Resolver]:
    live = Resolver("BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    yield live
    live.close()


def test_random_operators(resolver: Resolver) -> None:
    compared = 0
    for number in itertools.islice(numbers(SEED, operators(OPERATORS)), COUNT):
        case = draw_case(SEED, number)
        if all("float" in name for name in case.types.replace("->", "").replace("int32", "").split()):
            continue  # Eigen's bits are not claimed
        live = resolver.run(case)
        if live is None:
            continue
        try:
            interpreter = Interpreter(model_content=case.model(), profile="litert-opt")
            interpreter.allocate_tensors()
            ours = [invoke(interpreter, sample) for sample in case.samples]
        except TflqError:
            continue
        for mine, theirs in zip(ours, live, strict=True):
            for got, want in zip(mine, theirs, strict=True):
                assert not difference_of(got, want), f"seed {SEED}, case {number}: {case}: {difference_of(got, want)}"
        compared += 1
    assert compared > COUNT // 2
