"""Restore means and variances of output channels to the float model's, before the activation function.

An operator's rows f (float model) and q (integer model) have means and second moments. Those of its outputs W f and V
q, with V the values of the codes, follow by linearity. Only rows of the integer executor are sampled.

- Analytic bias correction adds (W - V) E[f]; empirical bias correction adds W E[f] - V E[q].
- Variance matching multiplies the scale of channel o by sqrt(var(W f)[o] / var(V q)[o]).

Sources: Nagel et al. 2019, "Data-free quantization through weight equalization and bias correction"; Finkelstein et al.
2019, "Fighting quantization bias with bias"; He and Cheng 2018, "Learning compression from limited unlabeled data"
(re-normalization, for variances).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.quantization.recipe.refining import BiasCorrection
from tflq.quantization.refine.moments import Moments

Reals = NDArray[np.float64]
#: A channel's scale changes by at most this factor.
REACH = 1.25


def bias_correction(kind: BiasCorrection, floats: Reals, stored: Reals, moments: Moments) -> Reals:
    """Return the correction of the bias, [G, O], for float weights and values of stored ones, [G, O, K]."""
    mean_float, mean_integer = moments.means()
    means = mean_integer if kind == BiasCorrection.EMPIRICAL else mean_float
    return _products(floats, mean_float) - _products(stored, means)


def variance_ratio(floats: Reals, stored: Reals, moments: Moments) -> Reals:
    """Return the factor for the scale of each output channel, [G, O]; 1 for channels that do not vary."""
    centred = moments.centred()
    assert centred.float_float is not None  # they were requested
    assert centred.integer_integer is not None
    float_variance = np.einsum("gok,gok->go", floats @ centred.float_float, floats)
    integer_variance = np.einsum("gok,gok->go", stored @ centred.integer_integer, stored)
    varies = (float_variance > 0) & (integer_variance > 0)
    ratio: Reals = np.sqrt(
        np.divide(float_variance, integer_variance, where=varies, out=np.ones_like(integer_variance))
    )
    return np.clip(ratio, 1 / REACH, REACH)


def _products(weights: Reals, row: Reals) -> Reals:
    products: Reals = np.einsum("gok,gk->go", weights, row)
    return products
