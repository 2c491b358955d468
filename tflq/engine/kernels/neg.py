"""NEG: y = -x, wrapping where integers overflow.

| operand | shape | types |
|---------|-------|-------|
| x       | any   | float32, float16, int8, int16, int32, int64, not quantized |
| y       | as x  | as x |

Source: LiteRT 2.3, neg.cc Prepare, Eval.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.families.xnnpack_floats import computing
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.typing import Array

_REFERENCE = tuple(
    Kernel("NEG", f"{t} -> {t}", prepare_function(np.negative), (1, 1))
    for t in ("float32", "float16", "int8", "int16", "int32", "int64")
)


def _subtract_from_zero(x: Array) -> Array:
    """Return 0 - x, as XNNPACK does: the negative of 0 is 0."""
    return np.asarray(0 - x)


KERNELS = (
    *_REFERENCE,
    *valid(xnnpack("litert-2.1", cpu="x86-64"), computing("NEG", _REFERENCE, _subtract_from_zero, 1)),
)
