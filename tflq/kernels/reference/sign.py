"""SIGN: y = 1, 0 or -1, as x is above, at or below 0.

| operand | shape | types                   |
|---------|-------|-------------------------|
| x       | any   | float32, float64, int32 |
| y       | as x  | as x                    |

Source: LiteRT 2.3, sign.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.unary import prepare_function
from tflq.kernels.kernel import Array, Kernel


def eval_sign(x: Array) -> Array:
    """Source: Sign::Eval. A NaN stays; both zeros give +0."""
    signs = np.asarray((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype))
    return np.where(np.isnan(x), x, signs)


KERNELS = tuple(
    Kernel("SIGN", f"{t} -> {t}", prepare_function(eval_sign), (1, 2)) for t in ("float32", "float64", "int32")
)
