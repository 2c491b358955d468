"""Single operators at the edges of Prepare's conditions, refused or computed, against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

import tflq
from support.single_op import T, build
from tflq.errors import RuntimeFailed, TflqError, UndefinedResultError

CODES = np.arange(-8, 8, dtype=np.int8).reshape(4, 4)
#: Operators that LiteRT refuses -> inputs, outputs, options.
REFUSED = {
    "DIV": (
        [T("int8", (4, 4), 0.1, 3), T("int8", (4, 4), [0.1, 0.2, 0.3, 0.4], [0] * 4, axis=1)],
        [T("int8", (4, 4), 0.1, 3)],
        ("DivOptions", {"fused_activation_function": 0}),
    ),
    "L2_NORMALIZATION": (
        [T("int8", (4, 4), 0.1, 3)],
        [T("int8", (4, 4), 1 / 128, 0)],
        ("L2NormOptions", {"fused_activation_function": 5}),
    ),
}


@pytest.mark.parametrize("op", REFUSED)
def test_refused_alike(op: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    inputs, outputs, options = REFUSED[op]
    model = build(op, inputs, outputs, options, version=2)
    with pytest.raises(RuntimeFailed):
        tflq.verify(model, against="litert-ref", inputs=[CODES] * len(inputs))
    with pytest.raises(TflqError):
        tflq.Interpreter(model_content=model, profile="litert-ref").allocate_tensors()


@pytest.mark.parametrize("profile", ["litert-opt", "litert-xnnpack"])
def test_what_is_not_a_number_has_code_0(profile: str) -> None:
    """Several scales of the output read as 0, by which ELU divides 0."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    outputs = [T("int8", (4, 4), [0.1, 0.2, 0.3, 0.4], [5] * 4, axis=1)]
    model = build("ELU", [T("int8", (4, 4), 0.1, 3)], outputs, version=1)
    assert tflq.verify(model, against=profile, inputs=[CODES]).verdict.value == "same"


def prepared(op: str, type_: str, scale: float, out: float) -> None:
    model = build(op, [T(type_, (2,), scale)], [T(type_, (2,), out)], version=3)
    tflq.Interpreter(model_content=model, profile="litert-ref").allocate_tensors()


@pytest.mark.parametrize("op", ["TANH", "LOGISTIC"])
def test_multipliers_beyond_int32_are_refused(op: str) -> None:
    prepared(op, "int16", 1e5, 2.0**-15)
    with pytest.raises(UndefinedResultError, match="beyond int32"):
        prepared(op, "int16", 2e5, 2.0**-15)


def test_codes_beyond_int32_are_refused_for_uint8() -> None:
    prepared("TANH", "int8", 0.1, 1 / 128)
    with pytest.raises(TflqError):
        prepared("TANH", "uint8", 0.1, 1e-12)
