"""GPTQ: round the weights of one input after another; the remaining real weights compensate for the error.

With H = sum of rows q q^T (damped), column k is rounded, and the columns behind it take up -(error / U[k, k]) U[k,
k+1:], where U is the upper Cholesky factor of H^-1. The largest diagonal entries of H go first. Columns beyond a block
take up the errors of the whole block at once, by a matrix product.

Source: Frantar et al. 2022, "GPTQ: Accurate post-training quantization for generative pre-trained transformers".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.refine.moments import damp

Reals = NDArray[np.float64]


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
