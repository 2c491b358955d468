"""SOFTMAX of 8-bit codes in integers, with its fields: exponentials in a width of bits, their sum, and one quotient.

The exponential of a code is that of its distance below the row's largest code. The output's scale is 1 / 256.
Sources of fields: tables of exponentials in Q15 or 8 bits (PULP-NN, RKNN-like runtimes), exponentials as powers of two
of a fixed-point exponent (I-BERT, ITA), reciprocals of the sum in place of a division.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.divisions import OF_HARDWARE, QUOTIENTS, Ints
from tflq.engine.numerics.stages import type_range
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("SOFTMAX",)
_CODES = (TensorType.INT8, TensorType.UINT8)
#: Codes that make 1.
_STEPS = 256
#: Exponentials of distances (reals, at least 0) in units of `one`, by name.
_POWER = "a power of two of {} fraction bits"
_FRACTIONS = (4, 5, 6, 8, 10)
EXPONENTIALS: Mapping[str, Callable[[Array, int], Ints]] = {
    "to nearest": lambda below, one: np.rint(one * np.exp(-below)).astype(np.int64),
    "cut off": lambda below, one: np.floor(one * np.exp(-below)).astype(np.int64),
    **{
        _POWER.format(bits): lambda below, one, bits=bits: _power_of_two(below, one, bits)  # type: ignore[misc]
        for bits in _FRACTIONS
    },
}
DIVISION = "division"
#: Bits of reciprocals of sums.
_RECIPROCALS = {f"reciprocal of {bits} bits": bits for bits in (16, 24, 30, 31)}
#: The values of each field.
FIELDS: Mapping[str, tuple[object, ...]] = {
    "exponential": tuple(EXPONENTIALS),
    "one": (127, 128, 255, 256, 1023, 1024, 4095, 4096, 16384, 32767, 32768, 65535, 65536, 1 << 20, 1 << 23),
    "quotient": (DIVISION, *_RECIPROCALS),
    "rounding": tuple(QUOTIENTS),
    "beta": ("own", "ignored"),
}


def _power_of_two(below: Array, one: int, bits: int) -> Ints:
    """Return one * 2**-(below / ln 2), its exponent in fixed point: a fraction from a table, then a shift."""
    steps = np.floor(below * np.log2(np.e) * 2**bits + 0.5).astype(np.int64)
    whole, part = steps >> np.int64(bits), steps & np.int64((1 << bits) - 1)
    raised: Ints = np.rint(one * 2.0 ** (-part / 2.0**bits)).astype(np.int64) >> np.minimum(whole, 62)
    return raised


@dataclass(frozen=True, slots=True)
class IntegerSoftmax:
    """One point of the grammar of integer softmaxes. Fields are spelled as files of profiles spell them."""

    exponential: str = "to nearest"
    one: int = 32768
    quotient: str = DIVISION
    rounding: str = "half up"
    beta: str = "own"


#: The reader of what a file states.
integer_softmax_of = reader(IntegerSoftmax, FIELDS, "an integer softmax")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants: the exponential of each distance in codes, 0 to 255, and the lowest code of the output."""

    exponentials: Ints
    low: int
    high: int
    dtype: np.dtype[Any]
    point: IntegerSoftmax


def softmax_in_integers(row: Kernel, point: IntegerSoftmax) -> Kernel:
    """Return the row of SOFTMAX in integers."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        x, y = node.input(0), node.outputs[0]
        node.check(x.type in _CODES and x.is_quantized, "has no codes of 8 bits", x)
        node.check(y.type in _CODES and float(y.scale) == 1 / _STEPS, "scale", y, expected=1 / _STEPS, got=y.scale)
        low, high = type_range(CARRIER[y.type])
        node.check(int(y.zero_point) == low, "zero point", y, expected=low, got=y.zero_point)
        beta = 1.0 if point.beta == "ignored" else float(node.options["beta"])
        below = np.arange(_STEPS) * float(x.scale) * beta
        node.check(bool(beta >= 0), "beta", expected="at least 0", got=beta)
        table = EXPONENTIALS[point.exponential](below, point.one)
        return Prepared((x.shape,), OpData(table, low, high, CARRIER[y.type], point), eval_softmax)

    return replace(row, prepare=prepare, takes=None)


def eval_softmax(data: OpData, x: Array) -> Array:
    """Look the exponentials up, add them, divide. Rounding: by the point. Overflow: none below 2**31 channels."""
    codes, point = x.astype(np.int64), data.point
    raised = data.exponentials[codes.max(-1, keepdims=True) - codes] if codes.size else codes
    total = np.maximum(raised.sum(-1, keepdims=True), 1)
    if point.quotient == DIVISION:
        quotient = QUOTIENTS[point.rounding](raised * _STEPS, np.broadcast_to(total, raised.shape))
    else:
        bits = _RECIPROCALS[point.quotient]
        product = raised * ((np.int64(1) << np.int64(bits)) // total)
        quotient = OF_HARDWARE[point.rounding](product, np.full_like(product, bits - 8))
    return np.asarray(np.clip(quotient + data.low, data.low, data.high).astype(data.dtype))
