"""Weights rounded with their inputs: GPTQ, AdaRound, bit-split.

AdaRound: learn for every weight whether to round up or down.

Codes are floor(target) + h(V), h(V) = clip(1.2 sigmoid(V) - 0.1, 0, 1), and V minimises the output error
e H e^T (e = code - target, H the second moments of the operator's rows) plus a term that drives h to 0 or 1:
lambda * sum(1 - |2h - 1|^beta), with beta falling from 20 to 2. Adam, from h = fraction of the target.
Source: Nagel et al. 2020, "Up or down? Adaptive rounding for post-training quantization", here without the activation
function.

Bit-split and stitching: codes as sums of ternary digits times powers of two, each digit chosen by the output error.

q = sum over m of 2^m b[m], b in {-1, 0, 1}. Digits go from the highest to the lowest, input by input: each takes the
value that is nearest to the optimum given all others. The pass over the stitched digits is repeated until nothing
changes. Source: Wang et al. 2020, "Towards accurate post-training network quantization via bit-split and stitching".

GPTQ: round the weights of one input after another; the remaining real weights compensate for the error.

With H = sum of rows q q^T (damped), column k is rounded, and the columns behind it take up -(error / U[k, k]) U[k,
k+1:], where U is the upper Cholesky factor of H^-1. The largest diagonal entries of H go first. Columns beyond a block
take up the errors of the whole block at once, by a matrix product.

Source: Frantar et al. 2022, "GPTQ: Accurate post-training quantization for generative pre-trained transformers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.moments import damp
from tflq.typing import Reals

STEPS, RATE, PULL = 600, 0.02, 0.05
#: Share of the steps before the pull to 0 or 1 begins.
WARM = 0.2


def adaround(targets: Reals, square: Reals, low: int, high: int) -> Reals:
    """Return codes [G, O, K] in low..high for real codes `targets`, under second moments `square` [G, K, K].

    If a row ends worse than by rounding to nearest, it is rounded to nearest.
    """
    weight = damp(square)
    weight = weight / np.trace(weight, axis1=1, axis2=2)[:, None, None] * weight.shape[1]
    floor = np.floor(targets)
    learned = np.clip(floor + (_learn(targets - floor, weight) >= 0.5), low, high)
    nearest = np.clip(np.rint(targets), low, high)
    worse = output_error(learned - targets, weight) > output_error(nearest - targets, weight)
    return np.where(worse[:, :, None], nearest, learned)


def output_error(error: Reals, square: Reals) -> Reals:
    """Return e H e^T of each row [G, O] of errors [G, O, K]."""
    errors: Reals = np.einsum("gok,gok->go", error @ square, error)
    return errors


def _learn(fraction: Reals, weight: Reals) -> NDArray[np.float32]:
    """Return h(V) in 0..1 after training, in float32."""
    target, square = fraction.astype(np.float32), weight.astype(np.float32)
    bounded = np.clip((target + 0.1) / 1.2, 1e-4, 1 - 1e-4)
    v = np.log(bounded / (1 - bounded))
    first, second = np.zeros_like(v), np.zeros_like(v)
    for step in range(1, STEPS + 1):
        sigmoid = 1 / (1 + np.exp(-v))
        h = np.clip(1.2 * sigmoid - 0.1, 0, 1)
        slope = 2 * (h - target) @ square
        done = step / STEPS
        if done > WARM:
            beta = 20 - 18 * (done - WARM) / (1 - WARM)
            apart = 2 * h - 1
            slope -= PULL * beta * 2 * np.sign(apart) * np.abs(apart) ** (beta - 1)
        slope *= 1.2 * sigmoid * (1 - sigmoid) * ((h > 0) & (h < 1))
        first += 0.1 * (slope - first)
        second += 0.001 * (slope * slope - second)
        v -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-12)
    return np.asarray(np.clip(1.2 / (1 + np.exp(-v)) - 0.1, 0, 1), np.float32)


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


#: Columns that are rounded before the others take up their errors.
BLOCK = 64


def gptq(targets: Reals, square: Reals, low: int, high: int, step: Reals | None = None) -> Reals:
    """Return codes [G, O, K] in low..high for real codes `targets`, under second moments `square` [G, K, K].

    Targets may be values in place of real codes; `step` [G, O, K] is then the value of one code.
    """
    order = np.argsort(-np.diagonal(square, axis1=1, axis2=2), axis=1, kind="stable")  # [G, K]
    weight = damp(square)
    weight = np.take_along_axis(np.take_along_axis(weight, order[:, :, None], 1), order[:, None, :], 2)
    upper = np.linalg.cholesky(np.linalg.inv(weight)).transpose(0, 2, 1)
    rest = np.take_along_axis(targets, order[:, None, :], 2)
    steps = np.ones((1, 1, rest.shape[2])) if step is None else np.take_along_axis(step, order[:, None, :], 2)
    codes = np.empty_like(rest)
    for start in range(0, rest.shape[2], BLOCK):
        stop = min(start + BLOCK, rest.shape[2])
        columns = np.ascontiguousarray(rest[:, :, start:stop])
        errors = np.empty_like(columns)
        for k in range(stop - start):
            row = upper[:, start + k, start:stop]
            unit = steps[:, :, start + k]
            codes[:, :, start + k] = np.clip(np.rint(columns[:, :, k] / unit), low, high)
            errors[:, :, k] = (columns[:, :, k] - codes[:, :, start + k] * unit) / row[:, k, None]
            columns[:, :, k + 1 :] -= errors[:, :, k, None] * row[:, None, k + 1 :]
        rest[:, :, stop:] -= errors @ upper[:, start:stop, stop:]
    back = np.argsort(order, axis=1)
    return np.take_along_axis(codes, back[:, None, :], 2)
