"""Mistakes of the program around a model: formulas, constant inputs, orders and functions of results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from support.devices import T, one
from support.usage import coloured, device
from tflq.diagnosis.usage.inputs import FLOATS
from tflq.diagnosis.usage.search import Mistake, find_mistake
from tflq.engine.profiles import by_name
from tflq.model.ir import Model, view

Array = NDArray[np.float64]
REF = by_name("litert-ref")


def dense(*, is_softmax: bool = False) -> Model:
    """Six inputs of scale 0.02 and zero point 9, five outputs of scale 0.03 and zero point -7, or probabilities."""
    if is_softmax:
        return one(
            "SOFTMAX", [T("int8", (1, 6), 0.05, 9)], T("int8", (1, 6), 1 / 256, -128), ("SoftmaxOptions", {"beta": 1.0})
        )
    draw = np.random.default_rng(2)
    weights = T("int8", (5, 6), 0.01, 0, value=draw.integers(-120, 120, (5, 6)).astype(np.int8))
    bias = T("int32", (5,), 0.0002, 0, value=draw.integers(-900, 900, 5).astype(np.int32))
    return one("FULLY_CONNECTED", [T("int8", (1, 6), 0.02, 9), weights, bias], T("int8", (1, 5), 0.03, -7))


def given(count: int = 6) -> list[Array]:
    """Real values, a few beyond the range of the codes."""
    return [v.reshape(1, 6) for v in np.random.default_rng(4).normal(0, 1.3, (count, 6)).astype(np.float32)]


def clipped(values: Array) -> NDArray[np.int8]:
    return np.clip(values, -128, 127).astype(np.int8)


def wrapped(values: Array) -> NDArray[np.int8]:
    return values.astype(np.int64).astype(np.int8)


#: What host code feeds of real values, of scale 0.02 and zero point 9; and words of the name.
FED: dict[str, tuple[Callable[[Array], Array], str]] = {
    "sign": (lambda r: clipped(np.rint(r / 0.02) - 9), "the zero point was subtracted in place of added"),
    "left out": (lambda r: clipped(np.rint(r / 0.02)), "the zero point was left out"),
    "twice": (
        lambda r: wrapped(clipped(np.rint(r / 0.02) + 9).astype(int) + 9),
        "the zero point was added a second time",
    ),
    "wraps": (lambda r: wrapped(np.rint(r / 0.02) + 9), "values beyond the range were not clamped: codes wrap"),
    "other end": (lambda r: clipped(np.rint(r / 0.03) - 7), "the output's scale and zero point were taken"),
    "quantized twice": (lambda r: clipped(np.rint((np.rint(r / 0.02) + 9) / 0.02) + 9), "quantized twice"),
    "real values": (lambda r: clipped(np.rint(r + 9)), "not scaled: the zero point was added to real values"),
    "zeros": (lambda r: np.zeros(r.shape, np.int8), "the input buffer was never filled, or holds one constant"),
    "one sample": (lambda r: clipped(np.rint(given()[0] / 0.02) + 9), "the input buffer was written once only"),
}


def found(model: Model, samples: list[dict[int, Array]], meant: list[Array]) -> Mistake | None:
    return find_mistake(model, samples, REF, meant)


@pytest.mark.parametrize("kind", FED)
def test_a_formula_of_host_code_is_named_from_outputs_alone(kind: str) -> None:
    model, (form, name) = dense(), FED[kind]
    samples = device(model, [form(v.astype(np.float64)) for v in given()], "litert-ref", whole=False)
    mistake = found(model, samples, given())
    assert mistake is not None
    assert any(one.startswith(name) for one in (mistake.name, *mistake.also)), mistake.name


def saved(model: Model, change: Callable[[Array], Array]) -> tuple[list[dict[int, Array]], list[Array]]:
    """Right runs, with outputs as a program changes their codes, and the inputs."""
    fed = [clipped(np.rint(v.astype(np.float64) / 0.05) + 9) for v in given()]
    (out,) = view(model).outputs
    return [
        {t: change(v) if t == out else v for t, v in one.items()}
        for one in device(model, fed, "litert-ref", whole=False)
    ], fed


def _softmax(real: Array) -> Array:
    raised = np.exp(real)
    return raised / raised.sum(-1, keepdims=True)


def test_an_input_that_the_dump_holds_and_the_device_lacked() -> None:
    model = dense()
    fed = [clipped(np.rint(v.astype(np.float64) / 0.02) + 9) for v in given()]
    (source,), unfilled = view(model).inputs, [np.full((1, 6), 9, np.int8)] * len(fed)
    samples = [
        {**made, source: x} for made, x in zip(device(model, unfilled, "litert-ref", whole=False), fed, strict=True)
    ]
    mistake = found(model, samples, [])
    assert mistake is not None
    assert "its input was the zero point in every run" in mistake.name


def test_a_softmax_that_the_program_applies_again() -> None:
    model = dense(is_softmax=True)
    samples, fed = saved(model, lambda c: _softmax((c.astype(np.float64) + 128) / 256).astype(np.float32))
    mistake = found(model, samples, fed)
    assert mistake is not None
    assert mistake.name == "softmax applied again by the program"


def test_outputs_of_the_float_model_are_never_certain() -> None:
    model = dense(is_softmax=True)
    (out,) = view(model).outputs
    floats = [{out: _softmax(v.astype(np.float64)).astype(np.float32)} for v in given()]
    mistake = found(model, floats, given())
    assert mistake is not None
    assert (mistake.name, mistake.is_certain) == (FLOATS, False)


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        (lambda c: 0.05 * (c - 9), "dequantized with the input's scale and zero point"),
        (lambda c: (c - 128) / 256, "dequantized with the wrong sign of the zero point"),
    ],
)
def test_outputs_that_are_dequantized_otherwise(formula: Callable[[Array], Array], name: str) -> None:
    model = dense(is_softmax=True)
    samples, fed = saved(model, lambda c: formula(c.astype(np.float64)).astype(np.float32))
    mistake = found(model, samples, fed)
    assert mistake is not None
    assert name in (mistake.name, *mistake.also)


def test_classes_and_samples_in_another_order() -> None:
    model = dense()
    fed = [clipped(np.rint(v.astype(np.float64) / 0.02) + 9) for v in given()]
    right = device(model, fed, "litert-ref", whole=False)
    (out,) = view(model).outputs
    classes = found(model, [{out: one[out][:, [2, 0, 1, 4, 3]]} for one in right], fed)
    assert classes is not None
    assert classes.name == "classes (elements of the output) in another order: 2, 0, 1, 4, 3, a permutation"
    order = found(model, [right[k] for k in (3, 0, 5, 1, 2, 4)], fed)
    assert order is not None
    assert order.name.startswith("samples in another order: the results saved are those of samples 3, 0, 5, 1, 2, 4")


def test_a_flat_output_names_no_mistake_of_the_user() -> None:
    model = coloured()
    (out,) = view(model).outputs
    flat = [{out: np.full((1, 6, 6, 4), 3, np.int8)} for _ in range(3)]
    meant = [np.random.default_rng(k).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8) for k in range(3)]
    assert found(model, flat, meant) is None
