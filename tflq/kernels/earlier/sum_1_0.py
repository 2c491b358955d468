"""SUM of 16-bit codes up to LiteRT 1.2: as in releases up to 2.13.

Operands and options: tflq/kernels/reference/sum.py.
Source: LiteRT 1.0 reduce.cc EvalSum.
"""

from __future__ import annotations

from tflq.kernels.earlier.sum_2_13 import INT16

KERNELS = (INT16,)
