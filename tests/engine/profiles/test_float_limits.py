"""AArch64 packages on NaN and on -0.0 at a limit of 0: patterns read off LiteRT 2.3.0 and tflite-runtime 2.14.0.

The operators have a fused RELU, or are one; every element is NaN, or -0.0. A pattern repeats for every run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.each import each
from support.running import run
from support.single_op import T, build

EQUAL, REPEATED, ALONE, MIXED = ((7,), (7,)), ((2, 7), (7,)), ((7,), (1,)), ((2, 1, 2, 7), (1, 2, 1, 7))
#: profile, operator, shapes -> of NaN (n: stays, 0: the limit), of -0.0 (its sign)
RECORDED = [
    ("litert-opt-arm64", "ADD", EQUAL, "nnnnnnn", "++++---"),
    ("litert-opt-arm64", "ADD", REPEATED, "nnnnnnn", "++++---"),
    ("litert-opt-arm64", "MUL", ALONE, "nnnnnnn", "++++---"),
    ("litert-opt-arm64", "MUL", MIXED, "nnnnnnn", "-------"),
    ("litert-opt-arm64", "SUB", EQUAL, "nnnnnnn", "++++---"),
    ("litert-opt-arm64", "SUB", REPEATED, "nnnnnnn", "-------"),
    ("litert-opt-arm64", "DIV", EQUAL, "nnnnnnn", "-------"),
    ("litert-ref-arm64", "ADD", EQUAL, "nnnnnnn", "-------"),
    ("litert-ref-arm64", "SUB", REPEATED, "nnnnnnn", "-------"),
    ("tflite-2.14-opt-arm64", "ADD", EQUAL, "nnnnnnn", "++++---"),
    ("tflite-2.14-opt-arm64", "ADD", REPEATED, "nnnnn00", "++++-++"),
    ("tflite-2.14-opt-arm64", "ADD", ALONE, "nnnnnnn", "++++---"),
    ("tflite-2.14-opt-arm64", "ADD", MIXED, "nnnnnnn", "-------"),
    ("tflite-2.14-opt-arm64", "MUL", REPEATED, "nnnnnnn", "++++---"),
    ("tflite-2.14-opt-arm64", "SUB", EQUAL, "nnnnnnn", "++++---"),
    ("tflite-2.14-opt-arm64", "SUB", ALONE, "0000000", "+++++++"),
    ("tflite-2.14-opt-arm64", "DIV", EQUAL, "nnnnnnn", "-------"),
    ("tflite-2.14-opt-arm64", "DIV", MIXED, "0000000", "+++++++"),
    ("tflite-2.14-ref-arm64", "ADD", EQUAL, "nnnnnn0", "------+"),
    ("tflite-2.14-ref-arm64", "ADD", REPEATED, "nnnnnnn", "-------"),
    ("tflite-2.14-ref-arm64", "MUL", EQUAL, "nnnnnn0", "------+"),
    ("tflite-2.14-ref-arm64", "SUB", EQUAL, "nnnnnn0", "------+"),
    ("tflite-2.14-ref-arm64", "SUB", REPEATED, "0000000", "+++++++"),
    ("tflite-2.14-ref-arm64", "DIV", ALONE, "0000000", "+++++++"),
]
#: what makes -0.0 of -0.0
NEUTRAL = {"ADD": -0.0, "DIV": 1.0, "MUL": 1.0, "SUB": 0.0}


def two(op: str, a: tuple[int, ...], b: tuple[int, ...], first: float, second: float, profile: str) -> Any:
    """The result of one operator of constant operands."""
    shape = np.broadcast_shapes(a, b)
    named = {"MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum"}.get(op, op.capitalize())
    fields = {"fused_activation_function": 1} if op in NEUTRAL else {}
    model = build(op, [T("float32", a), T("float32", b)], [T("float32", shape)], (f"{named}Options", fields))
    return run(model, [np.full(a, first, np.float32), np.full(b, second, np.float32)], profile)[0].reshape(-1)


def signs(values: Any) -> str:
    """Of zeros."""
    assert not values.any()
    return "".join("-" if sign else "+" for sign in np.signbit(values))


@each(("profile", "op", "shapes", "of_nan", "of_zero"), RECORDED)
def test_fused_limits(profile: str, op: str, shapes: Any, of_nan: str, of_zero: str) -> None:
    a, b = shapes
    got = two(op, a, b, np.nan, 1, profile)
    assert "".join("n" if np.isnan(v) else f"{v:.0f}" for v in got) == of_nan * (got.size // 7)
    got = two(op, a, b, -0.0, NEUTRAL[op], profile)
    assert signs(got) == of_zero * (got.size // 7)


@pytest.mark.parametrize("profile", ["litert-ref-arm64", "litert-opt-arm64", "tflite-2.14-ref-arm64"])
def test_relu_clears_signs_in_vectors(profile: str) -> None:
    model = build("RELU", [T("float32", (7,))], [T("float32", (7,))])
    assert signs(run(model, [np.full(7, -0.0, np.float32)], profile)[0]) == "++++---"
    assert np.isnan(run(model, [np.full(7, np.nan, np.float32)], profile)[0]).all()


def test_numbers_win_over_nan_in_2_14() -> None:
    for profile, x, want in (("tflite-2.14-opt-arm64", np.nan, 0), ("litert-opt-arm64", np.nan, np.nan)):
        model = build("RELU6", [T("float32", (3,))], [T("float32", (3,))])
        np.testing.assert_array_equal(run(model, [np.full(3, x, np.float32)], profile)[0], np.float32(want))
    for op, sign in (("MAXIMUM", "+"), ("MINIMUM", "-")):
        for profile in ("tflite-2.14-ref-arm64", "tflite-2.14-opt-arm64"):
            assert two(op, (2, 3), (3,), 1, np.nan, profile).tolist() == [1] * 6
            assert two(op, (2, 3), (3,), np.nan, 1, profile).tolist() == [1] * 6
            for zeros in ((0.0, -0.0), (-0.0, 0.0)):
                assert signs(two(op, (2, 3), (3,), *zeros, profile)) == sign * 6
        assert np.isnan(two(op, (2, 3), (3,), 1, np.nan, "litert-opt-arm64")).all()
