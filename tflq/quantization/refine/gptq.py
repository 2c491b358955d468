"""GPTQ: round one input's weights after another, and let those that are still real make up for the error.

With H = sum of rows q q^T (damped), column k is rounded, and the columns behind it take up
-(error / U[k, k]) U[k, k+1:], where U is the upper Cholesky factor of H^-1. The largest diagonal entries of H go first.
Source: Frantar et al. 2022, "GPTQ: Accurate post-training quantization for generative pre-trained transformers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.moments import damped

Reals = NDArray[np.float64]


def gptq(targets: Reals, square: Reals, low: int, high: int) -> Reals:
    """Codes [O, K] in low..high for real codes `targets` [O, K], under second moments `square` [K, K]."""
    order = np.argsort(-np.diag(square), kind="stable")
    upper = np.linalg.cholesky(np.linalg.inv(damped(square[np.ix_(order, order)]))).T
    rest, codes = targets[:, order].copy(), np.empty_like(targets)
    for k, column in enumerate(order):
        codes[:, column] = np.clip(np.rint(rest[:, k]), low, high)
        error = (rest[:, k] - codes[:, column]) / upper[k, k]
        rest[:, k + 1 :] -= error[:, None] * upper[k, k + 1 :]
    return codes
