"""SUM of 16-bit codes up to LiteRT 1.2: as in releases up to 2.13.

Operands and options: tflq/kernels/mean_sum/sum.py.
Source: LiteRT 1.0 reduce.cc EvalSum.
"""

from __future__ import annotations

from tflq.kernels.kernel import valid
from tflq.kernels.mean_sum.earlier_sum_2_13 import INT16
from tflq.kernels.validity import tflite

KERNELS = valid(tflite("litert-1.0", "litert-1.0"), INT16)
