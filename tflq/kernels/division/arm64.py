"""DIV of float32 on AArch64 up to 2.14: see tflq/kernels/families/float_limits.py."""

from __future__ import annotations

import numpy as np

from tflq.kernels.families.float_limits import COMPARED, NUMBERS, limited, where_equal
from tflq.kernels.kernel import valid
from tflq.kernels.validity import tflite

_LOOPS = where_equal(lambda a, b: COMPARED, NUMBERS)
KERNELS = valid(tflite(until="tflite-2.14", cpu="arm64"), limited("DIV", np.divide, _LOOPS, (1, 2)))
