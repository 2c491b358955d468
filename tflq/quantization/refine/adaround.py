"""AdaRound: learn for every weight whether to round up or down.

Codes are floor(target) + h(V), h(V) = clip(1.2 sigmoid(V) - 0.1, 0, 1), and V minimises the output error
e H e^T (e = code - target, H the second moments of the operator's rows) plus a term that drives h to 0 or 1:
lambda * sum(1 - |2h - 1|^beta), with beta falling from 20 to 2. Adam, from h = fraction of the target.
Source: Nagel et al. 2020, "Up or down? Adaptive rounding for post-training quantization", here without the activation
function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.moments import damp

Reals = NDArray[np.float64]

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
