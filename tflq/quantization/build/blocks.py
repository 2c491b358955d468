"""Scales for blocks of weights with four bits."""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.code_limits import code_limits
from tflq.engine.numerics.block_products import to_bfloat16
from tflq.model.ir import TensorType
from tflq.quantization.params import Params
from tflq.quantization.recipe.recipe import BLOCK
from tflq.typing import Array

#: Candidate ratios between the magnitude that gets the greatest code and a block's greatest magnitude.
_SHARES = np.linspace(1.0, 0.6, 17)
#: The least scale: float16 keeps all eight bits of mantissa, as bfloat16 has, of any number above it.
_LEAST = 2.0**-17


def in_blocks(weights: Array) -> Params:
    """Return parameters of weights (O, K) with one scale per BLOCK of them, chosen for the least squared error.

    Scales are exact in float16, the type in which files hold them, and in bfloat16, the type in which XNNPACK reads
    them.
    """
    blocks = weights.astype(np.float64).reshape(-1, BLOCK)
    reach, greatest = np.abs(blocks).max(1), code_limits(TensorType.INT4)[1]
    scale, least = np.ones(len(blocks), np.float32), np.full(len(blocks), np.inf)
    for share in _SHARES:
        tried = to_bfloat16(np.maximum(share * reach / greatest, _LEAST).astype(np.float32))
        wide = tried[:, None].astype(np.float64)
        errors = np.square(np.clip(np.rint(blocks / wide), -greatest, greatest) * wide - blocks).sum(1)
        scale, least = np.where(errors < least, tried, scale), np.minimum(errors, least)
    return Params(TensorType.INT4, scale, np.zeros(1, np.int64), narrow=True, block=BLOCK)
