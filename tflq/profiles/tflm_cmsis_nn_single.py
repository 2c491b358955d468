"""`tflm-cmsis-nn-single`: as `tflm-cmsis-nn`, the library built with CMSIS_NN_USE_SINGLE_ROUNDING.

Its own kernels round once; those that TensorFlow Lite Micro falls back to still round twice.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.cmsis_nn.rounding import rounded_by_the_library_once
from tflq.profiles.tflm_cmsis_nn import TFLM_CMSIS_NN

TFLM_CMSIS_NN_SINGLE = TFLM_CMSIS_NN.derive(
    name="tflm-cmsis-nn-single",
    source=replace(TFLM_CMSIS_NN.source, resolver="CMSIS-NN 99f736a kernels, single rounding"),
).within(rounded_by_the_library_once)
