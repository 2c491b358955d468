"""Orders in which a device adds products of floats, planted by scalar code and named by explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.explanation import explain_operator
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import PROFILES
from tflq.model.ir import Buffer, Model, Operator, OperatorCode, Record, Subgraph, TensorSpec, TensorType

Array = NDArray[Any]
REF = PROFILES["litert-ref"]
LENGTH, UNITS, ROWS = 37, 5, 6


@pytest.fixture(scope="module")
def dense() -> tuple[Model, Array, Array]:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(UNITS, LENGTH)).astype(np.float32)
    x = rng.normal(size=(ROWS, LENGTH)).astype(np.float32)
    tensors = tuple(
        TensorSpec(name, TensorType.FLOAT32, shape, buffer)
        for name, shape, buffer in (("x", (ROWS, LENGTH), 0), ("w", (UNITS, LENGTH), 1), ("y", (ROWS, UNITS), 0))
    )
    options = {"fused_activation_function": 0, "keep_num_dims": False, "weights_format": 0}
    operator = Operator(0, (0, 1, -1), (2,), options=Record("FullyConnectedOptions", options))
    buffers = (Buffer(), Buffer(np.frombuffer(weights.tobytes(), np.uint8)))
    model = Model(3, (OperatorCode(9, "FULLY_CONNECTED"),), (Subgraph(tensors, (0,), (2,), (operator,)),), buffers)
    return model, x, weights


def lanes(products: list[np.float32], count: int) -> np.float32:
    """Lane l has terms l, l + count ...; then lanes 0 and count / 2, 1 and count / 2 + 1 ... meet."""
    sums = [np.float32(0)] * count
    for k, product in enumerate(products):
        sums[k % count] = np.float32(sums[k % count] + product)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [np.float32(sums[i] + sums[i + half]) for i in range(half)]
    return sums[0]


def halves(products: list[np.float32]) -> np.float32:
    total = np.float16(0)
    for product in products:
        total = np.float16(np.float32(total) + product)
    return np.float32(total)


@pytest.mark.parametrize("cause", ["sums in 4 lanes", "sums in 8 lanes", "sums in float16", "sums in float64"])
def test_an_order_of_sums_is_named(dense: tuple[Model, Array, Array], cause: str) -> None:
    model, x, weights = dense
    right = run(make_plan(model, REF), {0: x}, keep_all=True).values
    made = np.zeros((ROWS, UNITS), np.float32)
    for row in range(ROWS):
        for unit in range(UNITS):
            products = [np.float32(a * b) for a, b in zip(x[row], weights[unit], strict=True)]
            if cause == "sums in float64":
                exact = (float(a) * float(b) for a, b in zip(x[row], weights[unit], strict=True))
                made[row, unit] = np.float32(sum(exact))
            else:
                made[row, unit] = halves(products) if "16" in cause else lanes(products, int(cause.split()[2]))
    assert (made != right[2]).any()
    found = explain_operator(OperatorCase(model, (Dump("", {**right, 2: made}),), 0, REF))
    assert cause in [name for h in found.exact for name in (h.name, *h.also)]
