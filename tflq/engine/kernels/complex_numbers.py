"""REAL, IMAG, COMPLEX_ABS: real parts, imaginary parts and absolute values of complex numbers.

| operand | shape | types                 |
|---------|-------|-----------------------|
| x       | any   | complex64, complex128 |
| y       | as x  | float32, float64      |

Exactness: COMPLEX_ABS is exact on the same libm (hypotf; hypot for complex128).
Source: LiteRT 2.3, complex_support.cc EvalReal, EvalImag, EvalAbs.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.exactness import SAME_LIBM
from tflq.engine.kernels.families.complex_parts import kernels
from tflq.engine.numerics.libm import hypotf
from tflq.typing import Array


def absolute(x: Array) -> Array:
    """Source: std::abs. Rounding: libm's, which is NumPy's for float64."""
    return hypotf(x.real, x.imag) if x.dtype == np.complex64 else np.hypot(x.real, x.imag)


KERNELS = (*kernels("REAL", np.real), *kernels("IMAG", np.imag), *kernels("COMPLEX_ABS", absolute, SAME_LIBM))
