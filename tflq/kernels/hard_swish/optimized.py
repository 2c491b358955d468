"""Float results of the optimized resolver are not claimed: see tflq/kernels/families/unclaimed.py."""

from __future__ import annotations

from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.hard_swish import reference
from tflq.kernels.kernel import valid
from tflq.kernels.validity import opt

KERNELS = (*valid(opt(), *unclaimed_floats(reference.KERNELS)),)
