"""CONV_2D of releases up to LiteRT 1.0: packed weights are refused, and hybrid results of 2.14 are not claimed."""

from __future__ import annotations

from tflq.kernels.conv_2d import reference_hybrid
from tflq.kernels.families.four_bits import refuse_packed
from tflq.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.kernels.kernel import Kernel, promising, valid
from tflq.kernels.validity import tflite

_PACKED = (
    Kernel("CONV_2D", "int16 int4 int32|int64 -> int16", refuse_packed),
    Kernel("CONV_2D", "float32 int4 float32 -> float32", refuse_packed),
)
KERNELS = (
    *valid(tflite(until="tflite-2.14"), *_PACKED, *promising(UNCLAIMED_2_14, reference_hybrid.KERNELS)),
    *valid(tflite("litert-1.0", "litert-1.0"), *_PACKED),
)
