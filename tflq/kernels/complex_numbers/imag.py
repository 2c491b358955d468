"""IMAG: the imaginary parts of complex numbers.

| operand | shape | types                 |
|---------|-------|-----------------------|
| x       | any   | complex64, complex128 |
| y       | as x  | float32, float64      |

Source: LiteRT 2.3, complex_support.cc EvalImag.
"""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.complex_parts import kernels

KERNELS = kernels("IMAG", np.imag)
