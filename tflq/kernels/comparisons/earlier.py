"""EQUAL of 16-bit codes up to LiteRT 2.0: codes are compared as they are, whatever their scales.

Operands: tflq/kernels/comparisons/equal.py.
Source: TensorFlow 2.14 lite/kernels/comparisons.cc EqualEval.
"""

from __future__ import annotations

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.families.comparison import kernels
from tflq.kernels.kernel import valid
from tflq.kernels.validity import tflite

KERNELS = valid(
    tflite(until="litert-2.0"),
    *(row for row in kernels("EQUAL", np.equal, ("int16",), (1, 5)) if row.signature.reads(TensorType.INT16)),
)
