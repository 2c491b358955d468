"""`tflm-esp-nn`: TensorFlow Lite Micro with ESP-NN's kernels, in C: the bits of the reference kernels.

Portable and optimized C agree. Vector code of the ESP32-S3 and ESP32-P4 is not claimed. TensorFlow Lite Micro does
not hand dilated convolutions on.
Source: ESP-NN d45b843, esp_nn_multiply_by_quantized_mult.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.profiles.tflm import TFLM

TFLM_ESP_NN = TFLM.derive(
    name="tflm-esp-nn", source=replace(TFLM.source, resolver="ESP-NN d45b843 kernels", cpu="any, in C")
)
