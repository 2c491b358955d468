"""`kernels/fully_connected/packed.py` against live LiteRT: weights of four bits under the optimized resolver."""

from __future__ import annotations

import numpy as np
import pytest

from support.block_weights import block_model
from support.each import each
from support.running import run
from support.single_op import FULL, Array, T, build, litert
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError

SHAPES = [(1, 32, 4), (3, 64, 5), (4, 96, 8), (7, 70, 9), (2, 34, 4), (9, 256, 33), (5, 33, 6), (6, 64, 3), (2, 30, 8)]


def model(
    rng: np.random.Generator, shape: tuple[int, int, int], low: int, activation: int, asymmetric: bool, scales: int = 0
) -> bytes:
    rows, length, units = shape
    scale = rng.uniform(0.001, 0.1, scales or units).astype(np.float32)
    weights = rng.integers(low, 8, (units, length)).astype(np.int8)
    operands = [
        T("float32", (rows, length)),
        T("int4", (units, length), scale, np.zeros(len(scale), int), value=weights),
    ]
    if activation % 2:
        operands.append(T("float32", (units,), value=rng.standard_normal(units).astype(np.float32)))
    options = {"fused_activation_function": activation, "asymmetric_quantize_inputs": asymmetric}
    return build(
        "FULLY_CONNECTED", operands, [T("float32", (rows, units))], ("FullyConnectedOptions", options), version=4
    )


def assert_same(content: bytes, x: Array) -> None:
    got = run(content, [x], "litert-opt")[0]
    want = litert(content, [x], FULL)[0]
    assert got.shape == want.shape
    assert np.array_equal(got.view(np.uint32), want.view(np.uint32)) or np.array_equal(got, want, equal_nan=True)


@each("shape", SHAPES)
@each("low", [-7, -8])
def test_drawn_weights(shape: tuple[int, int, int], low: int) -> None:
    rng = np.random.default_rng([*shape, -low])
    for activation in range(5):
        content = model(rng, shape, low, activation, asymmetric=activation < 2)
        assert_same(content, (rng.standard_normal(shape[:2]) * 10.0 ** rng.integers(-3, 4)).astype(np.float32))


@pytest.mark.parametrize("value", [0.0, 1e-42, 3e-38, np.inf, np.nan, 3e38])
def test_extreme_rows(value: float) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 64)).astype(np.float32)
    x[1], x[2, 5] = 0, value
    if value == 1e-42:
        x[2] = rng.integers(-9, 9, 64) * np.float32(1e-44)
    assert_same(model(rng, (4, 64, 6), -7, 0, False), x)


def test_one_scale_for_all_units() -> None:
    rng = np.random.default_rng(4)
    assert_same(model(rng, (4, 64, 6), -7, 1, False, scales=1), rng.standard_normal((4, 64)).astype(np.float32))


@pytest.mark.parametrize(
    ("rows", "length", "units", "block"),
    [(1, 32, 4, 32), (3, 96, 5, 32), (4, 128, 17, 64), (9, 512, 24, 256), (2, 48, 6, 16), (2, 64, 3, 32)],
)
def test_blocks(rows: int, length: int, units: int, block: int) -> None:
    rng = np.random.default_rng([rows, length, units])
    for bias in (True, False):
        for spread in (0.0, 3.0):
            content = block_model(rng, rows, length, units, block, bias=bias)
            rates = np.exp(spread * rng.standard_normal((rows, 1)))
            assert_same(content, (rng.standard_normal((rows, length)) * rates).astype(np.float32))


def test_packed_weights_without_a_scale_are_refused() -> None:
    rng = np.random.default_rng(5)
    operands = [T("float32", (2, 32)), T("int4", (4, 32), value=rng.integers(-7, 8, (4, 32)).astype(np.int8))]
    content = build("FULLY_CONNECTED", operands, [T("float32", (2, 4))], ("FullyConnectedOptions", {}), version=4)
    interpreter = Interpreter(model_content=content, profile="litert-opt")
    with pytest.raises(ModelError, match="scale"):
        interpreter.allocate_tensors()
    with pytest.raises((RuntimeError, ValueError)):
        litert(content, [rng.standard_normal((2, 32)).astype(np.float32)], FULL)
