"""Float results of the optimized resolver are not claimed: see tflq/kernels/families/unclaimed.py."""

from __future__ import annotations

from tflq.kernels.batch_matmul import reference
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

_ROWS = unclaimed_floats(reference.KERNELS)
KERNELS = (*valid(opt(until="tflite-2.14"), *_ROWS), *valid(opt(), *_ROWS))
