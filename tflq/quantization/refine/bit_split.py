"""Bit-split and stitching: codes as sums of ternary digits times powers of two, each digit chosen by the output error.

q = sum over m of 2^m b[m], b in {-1, 0, 1}. Digits go from the highest to the lowest, input by input: each takes the
value that is nearest to the optimum given all others. The pass over the stitched digits is repeated until nothing
changes. Source: Wang et al. 2020, "Towards accurate post-training network quantization via bit-split and stitching".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.moments import damp

Reals = NDArray[np.float64]
#: Maximum number of passes over all digits.
ROUNDS = 3


def bit_split(targets: Reals, square: Reals, low: int, high: int) -> Reals:
    """Return codes [G, O, K] in low..high for real codes `targets`, under second moments `square` [G, K, K]."""
    weight = damp(square)
    codes = np.clip(np.rint(targets), low, high)
    slope = (codes - targets) @ weight  # half the gradient of the error
    digits = _digits(codes)
    for _ in range(ROUNDS):
        before = codes.copy()
        for position, digit in enumerate(digits):
            _settle(codes, slope, digit, 2.0 ** (len(digits) - 1 - position), weight, low, high)
        if np.array_equal(before, codes):
            break
    return codes


def _digits(codes: Reals) -> list[Reals]:
    """Return the signed digits of the codes' magnitudes, the highest first."""
    size = int(np.abs(codes).max(initial=1))
    places = range(size.bit_length() - 1, -1, -1)
    return [np.sign(codes) * ((np.abs(codes).astype(np.int64) >> place) & 1) for place in places]


def _settle(codes: Reals, slope: Reals, digit: Reals, unit: float, weight: Reals, low: int, high: int) -> None:
    """Choose one digit of all codes, input by input; `codes`, `slope` and `digit` are changed in place."""
    for k in range(codes.shape[2]):
        best = digit[:, :, k] - slope[:, :, k] / (weight[:, k, k, None] * unit)
        chosen = np.clip(np.rint(best), -1, 1)
        step = (chosen - digit[:, :, k]) * unit
        step[(codes[:, :, k] + step < low) | (codes[:, :, k] + step > high)] = 0
        if step.any():
            digit[:, :, k] += step / unit
            codes[:, :, k] += step
            slope += step[:, :, None] * weight[:, None, k]
