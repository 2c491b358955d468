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
    """Codes [G, O, K] in low..high for real codes `targets`, under second moments `square` [G, K, K]."""
    order = np.argsort(-np.diagonal(square, axis1=1, axis2=2), axis=1, kind="stable")  # [G, K]
    weight = damped(square)
    weight = np.take_along_axis(np.take_along_axis(weight, order[:, :, None], 1), order[:, None, :], 2)
    upper = np.linalg.cholesky(np.linalg.inv(weight)).transpose(0, 2, 1)
    rest = np.take_along_axis(targets, order[:, None, :], 2)
    codes = np.empty_like(rest)
    for k in range(rest.shape[2]):
        codes[:, :, k] = np.clip(np.rint(rest[:, :, k]), low, high)
        error = (rest[:, :, k] - codes[:, :, k]) / upper[:, k, k, None]
        rest[:, :, k + 1 :] -= error[:, :, None] * upper[:, None, k, k + 1 :]
    back = np.argsort(order, axis=1)
    return np.take_along_axis(codes, back[:, None, :], 2)
