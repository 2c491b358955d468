"""PAD, PADV2 of r1.15's optimized kernels: int8 runs the reference kernel.

Source: TensorFlow r1.15 lite/kernels/pad.cc Eval.
"""

from __future__ import annotations

from tflq.kernels.tf1.pad import rows

KERNELS = (*rows("PAD", ("int8",)), *rows("PADV2", ("int8",)))
