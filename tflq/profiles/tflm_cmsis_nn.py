"""`tflm-cmsis-nn`: TensorFlow Lite Micro with CMSIS-NN's kernels as they are built by default.

Plain C, the DSP extension (Cortex-M4) and MVE (Cortex-M55) give the same bits: those of the reference kernels but for
what tflq/kernels/cmsis_nn holds.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.cmsis_nn.registry import CMSIS_NN
from tflq.profiles.tflm import TFLM

TFLM_CMSIS_NN = TFLM.derive(
    name="tflm-cmsis-nn",
    source=replace(TFLM.source, resolver="CMSIS-NN 99f736a kernels", cpu="Cortex-M"),
    kernels=CMSIS_NN,
)
