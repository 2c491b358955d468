"""SQUARE, SQRT and RSQRT of float32 by XNNPACK: see tflq/engine/kernels/families/xnnpack_floats.py.

Roots begin with the processor's estimate of 1 / sqrt(x), which makers choose: with AVX-512 it is that of the processor
in `schemas/rsqrt_estimate.json`, with AVX2 it is unknown, and the correctly rounded root takes its place.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.families.xnnpack_floats import applying, computing
from tflq.engine.kernels.kernel import promising, valid
from tflq.engine.kernels.roots import reference
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.rsqrt_estimate import CPU

_ESTIMATED = close(f"roots begin with the processor's own estimate; with AVX-512 it is that of {CPU}")

KERNELS = valid(
    xnnpack("litert-2.1", cpu="x86-64"),
    computing("SQUARE", reference.SQUARE, np.square, 1),
    *promising(
        _ESTIMATED,
        (
            applying("RSQRT", reference.RSQRT, lambda _, arithmetic: arithmetic.xnnpack_functions.rsqrt),
            applying("SQRT", reference.SQRT, lambda _, arithmetic: arithmetic.xnnpack_functions.sqrt),
        ),
    ),
)
