"""DEPTHWISE_CONV_2D of float activations up to 2.14: results are not claimed."""

from __future__ import annotations

from tflq.kernels.depthwise_conv_2d import reference_hybrid
from tflq.kernels.families.hybrid import UNCLAIMED_2_14
from tflq.kernels.kernel import promising, valid
from tflq.kernels.validity import tflite

KERNELS = valid(tflite(until="tflite-2.14"), *promising(UNCLAIMED_2_14, reference_hybrid.KERNELS))
