"""FULLY_CONNECTED up to 2.9: several weight scales read as 0 (tflq/kernels/fully_connected/earlier_2_9.py).

Source: TensorFlow 2.9 lite/kernels/fully_connected.cc EvalQuantized.
"""

from __future__ import annotations

from tflq.kernels.fully_connected.earlier_2_9 import one_scale
from tflq.kernels.fully_connected.optimized import prepare
from tflq.kernels.fully_connected.optimized_int16 import prepare_int16
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

KERNELS = valid(
    opt(until="tflite-2.9"),
    Kernel("FULLY_CONNECTED", "int8 int8|int4|int2 int32? -> int8", one_scale(prepare), (1, 9)),
    Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", one_scale(prepare_int16), (1, 9)),
)
