"""SIN, COS: by the host's libm.

| operand | shape | types            |
|---------|-------|------------------|
| x       | any   | float32, float16 |
| y       | as x  | as x             |

Source: LiteRT 2.3, elementwise.cc SinEval, CosEval.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.unary import prepare_function
from tflq.engine.kernels.families.xnnpack_floats import applying
from tflq.engine.kernels.kernel import Kernel, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics import xnnpack_functions
from tflq.engine.numerics.libm import cosf, sinf
from tflq.typing import Array


def sin_half(x: Array) -> Array:
    """Compute in float32 and round back."""
    return sinf(x).astype(np.float16)


def cos_half(x: Array) -> Array:
    """Compute in float32 and round back."""
    return cosf(x).astype(np.float16)


ROWS = (
    Kernel("SIN", "float32 -> float32", prepare_function(sinf), (1, 2), exactness=SAME_LIBM),
    Kernel("SIN", "float16 -> float16", prepare_function(sin_half), (1, 2), exactness=SAME_LIBM),
    Kernel("COS", "float32 -> float32", prepare_function(cosf), (1, 2), exactness=SAME_LIBM),
    Kernel("COS", "float16 -> float16", prepare_function(cos_half), (1, 2), exactness=SAME_LIBM),
)

KERNELS = (
    *ROWS,
    *valid(
        xnnpack("litert-2.1", cpu="x86-64"),
        applying("SIN", ROWS, lambda *_: xnnpack_functions.SIN),
        applying("COS", ROWS, lambda *_: xnnpack_functions.COS),
    ),
    *valid(
        xnnpack("litert-2.1", "litert-2.2", cpu="x86-64"), applying("COS", ROWS, lambda *_: xnnpack_functions.COS_2_2)
    ),
)
