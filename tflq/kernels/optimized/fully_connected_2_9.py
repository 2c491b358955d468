"""FULLY_CONNECTED up to 2.9: several weight scales read as 0 (tflq/kernels/earlier/fully_connected_2_9.py).

Source: TensorFlow 2.9 lite/kernels/fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from tflq.kernels.earlier.fully_connected_2_9 import one_scale
from tflq.kernels.kernel import Kernel
from tflq.kernels.optimized.fully_connected import prepare
from tflq.kernels.optimized.fully_connected_int16 import prepare_int16

KERNELS = (
    Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", one_scale(prepare), (1, 9)),
    Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", one_scale(prepare_int16), (1, 9)),
)
