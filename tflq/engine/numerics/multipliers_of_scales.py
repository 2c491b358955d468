"""Real multipliers from scales, in the precisions in which runtimes compute them: one field of their arithmetic.

LiteRT 2.3 computes many of them in float32 (activations.cc ReluPrepare, LeakyReluPrepare; mul.cc Prepare) or with a
float32 product of two scales (kernel_util.cc GetQuantizedConvolutionMultipler). LiteRT 2.4 and TensorFlow Lite Micro
compute the same multipliers in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scales:
    """Scales of an operator's operands, float32 arrays that broadcast: a code is a * b / y LSB of accumulator.

    `b` is None for operators with one factor.
    """

    a: Floats
    b: Floats | None
    y: Floats

    @property
    def real(self) -> Reals:
        """The real multipliers in float64 throughout."""
        return in_float64(self)


def in_float64(s: Scales) -> Reals:
    """Return multipliers in float64 throughout."""
    wide = s.a.astype(np.float64)
    return np.asarray((wide if s.b is None else wide * s.b.astype(np.float64)) / s.y.astype(np.float64))


def in_float32(s: Scales) -> Reals:
    """Return multipliers in float32, the product of scales first."""
    return np.asarray((s.a if s.b is None else s.a * s.b) / s.y).astype(np.float64)


def product_last(s: Scales) -> Reals:
    """Return multipliers in float32, the quotient first."""
    quotient = s.a / s.y
    return np.asarray(quotient if s.b is None else quotient * s.b).astype(np.float64)


def of_float32_product(s: Scales) -> Reals:
    """Return a float32 product of scales, divided in float64.

    Source: LiteRT 2.3 kernel_util.cc GetQuantizedConvolutionMultipler.
    """
    product = s.a if s.b is None else s.a * s.b
    return np.asarray(product.astype(np.float64) / s.y.astype(np.float64))


def times_reciprocal(s: Scales) -> Reals:
    """Return multipliers in float32, times the reciprocal of the output's scale."""
    product = s.a if s.b is None else s.a * s.b
    return np.asarray(product * (np.float32(1) / s.y)).astype(np.float64)


def round_to_float32(s: Scales) -> Reals:
    """Return float64 multipliers rounded to float32 once."""
    return in_float64(s).astype(np.float32).astype(np.float64)


def round_to_float16(s: Scales) -> Reals:
    """Return float64 multipliers rounded to float16 once."""
    return in_float64(s).astype(np.float16).astype(np.float64)


#: Ways to compute multipliers from scales. "given" is the one that a kernel prepares.
MULTIPLIERS: Mapping[str, Callable[[Scales], Reals]] = {
    "given": in_float64,
    "float64": in_float64,
    "float32": in_float32,
    "float32, the product of scales last": product_last,
    "float32 product of scales, float64 quotient": of_float32_product,
    "float32, times the output scale's reciprocal": times_reciprocal,
    "float64 rounded to float32": round_to_float32,
    "float64 rounded to float16": round_to_float16,
}
