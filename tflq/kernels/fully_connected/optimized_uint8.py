"""FULLY_CONNECTED uint8 by ruy, as releases after 2.14 have it (see conv_2d_uint8.py).

Source: LiteRT 2.3 fully_connected.cc EvalQuantized; optimized_ops.h FullyConnected.
"""

from __future__ import annotations

from tflq.kernels.fully_connected.optimized import prepare
from tflq.kernels.kernel import Kernel, valid
from tflq.kernels.validity import opt

KERNELS = valid(
    opt("litert-1.0"),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32? -> uint8", prepare, (1, 14)),
    Kernel("FULLY_CONNECTED", "uint8 uint8 int32 -> int16", prepare, (1, 14)),
)
