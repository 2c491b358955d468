"""Devices that dequantize, compute in floats and quantize: found and named, whatever the operator and the precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.devices import codes_of, dump, explained, names_of, one
from support.single_op import T
from tflq.engine.kernels.families.reals import PRECISIONS
from tflq.model.ir import Model

Array = NDArray[Any]
Rounding = Callable[[Array], Array]
ALL = np.arange(-128, 128, dtype=np.int8)
#: The quotient brings every other code half-way between two.
X, Y = np.float32(0.0371), np.float32(0.0742)


def bfloat16(x: Array) -> Array:
    """Each float32 rounded to 8 significant bits, ties to even."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.rint(fraction * 2**8), exponent - 8).astype(np.float32)


def float16(x: Array) -> Array:
    return x.astype(np.float16).astype(np.float32)


def as_is(x: Array) -> Array:
    return x


def divided(x: Array) -> Array:
    return x / Y


def multiplied(x: Array) -> Array:
    return x * (np.float32(1) / Y)


@pytest.mark.parametrize(("precision", "rounded"), [("bfloat16", bfloat16), ("float16", float16), ("float32", as_is)])
def test_precisions_round_to_nearest_even(precision: str, rounded: Rounding) -> None:
    values = np.random.default_rng(0).normal(0, 40, 4096).astype(np.float32)
    np.testing.assert_array_equal(PRECISIONS[precision].operands(values), rounded(values))


def relu() -> Model:
    return one("RELU", [T("int8", (256,), X, 3)], T("int8", (256,), Y, -7))


@pytest.mark.parametrize(
    ("rounded", "quotient", "name"),
    [
        (as_is, divided, "computed in float32, rounded half to even"),
        pytest.param(bfloat16, divided, "computed in bfloat16, rounded half to even", marks=pytest.mark.slow),
        (float16, divided, "computed in float16, rounded half to even"),
        pytest.param(
            bfloat16,
            multiplied,
            "computed in bfloat16, times the output scale's reciprocal, rounded half to even",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_rectifier_in_floats(rounded: Rounding, quotient: Callable[[Array], Array], name: str) -> None:
    reals = rounded(np.maximum(rounded(X * (ALL.astype(np.float32) - 3)), 0))
    found = explained(relu(), dump(relu(), [ALL], [codes_of(reals, Y, -7, np.int8, quotient)]))
    assert found.first is not None
    assert name in names_of(found)


def contraction(rounded: Rounding) -> tuple[Model, Array, Array]:
    """A FULLY_CONNECTED of constant weights and biases with a scale a unit, its input, and the device's codes."""
    rng = np.random.default_rng(3)
    weights, bias = rng.integers(-127, 128, (24, 16)), rng.integers(-4000, 4000, 24)
    scales = np.ldexp(np.float32(1), rng.integers(-8, -4, 24)).astype(np.float32)
    model = one(
        "FULLY_CONNECTED",
        [
            T("int8", (32, 16), 0.5, 5),
            T("int8", (24, 16), scales, 0, 0, weights),
            T("int32", (24,), scales / 2, 0, 0, bias),
        ],
        T("int8", (32, 24), 8.0, -4),
        ("FullyConnectedOptions", {"fused_activation_function": 0, "weights_format": 0, "keep_num_dims": False}),
    )
    x = rng.integers(-128, 128, (32, 16)).astype(np.int8)
    left, right = rounded((x.astype(np.float32) - 5) / 2), rounded(scales[:, None] * weights.astype(np.float32))
    sums = np.zeros((32, 24), np.float32)
    for k in range(16):
        sums += left[:, k : k + 1] * right[:, k]
    reals = rounded(sums + scales / 2 * bias.astype(np.float32))
    codes = np.clip(np.rint(reals / 8) - 4, -128, 127).astype(np.int8)
    return model, x, codes


@pytest.mark.parametrize(("precision", "rounded"), [("float32", as_is), ("bfloat16", bfloat16)])
def test_a_contraction_with_constant_weights_in_floats(precision: str, rounded: Rounding) -> None:
    model, x, codes = contraction(rounded)
    found = explained(model, dump(model, [x], [codes]))
    assert found.first is not None
    assert f"computed in {precision}, rounded half to even" in names_of(found)


@pytest.mark.slow
def test_a_rescaled_tensor_is_dequantized_and_quantized() -> None:
    model = one("QUANTIZE", [T("int8", (256,), X, 3)], T("int8", (256,), Y, -7), ("QuantizeOptions", {}))
    reals = bfloat16(bfloat16(X * (ALL.astype(np.float32) - 3)))
    found = explained(model, dump(model, [ALL], [codes_of(reals, Y, -7, np.int8, divided)]))
    assert "computed in bfloat16, rounded half to even" in names_of(found)
