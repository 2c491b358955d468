"""PAD, PADV2 of r1.15's optimized kernels: int8 runs the reference kernel.

Source: TensorFlow r1.15 lite/kernels/pad.cc Eval.
"""

from __future__ import annotations

from tflq.kernels.kernel import valid
from tflq.kernels.pad.tf1 import rows
from tflq.kernels.validity import tf1

KERNELS = valid(tf1("opt"), *rows("PAD", ("int8",)), *rows("PADV2", ("int8",)))
