"""Profiles of TensorFlow Lite Micro and the libraries on it, and of what is meant."""

from __future__ import annotations

from tflq.profiles.rows.row import Row

ROWS = (
    Row(
        "tflm",
        "TensorFlow Lite Micro with its reference kernels.",
        "litert-ref",
        {"package": "tflite-micro", "version": "0.dev20261023", "resolver": "reference kernels", "cpu": "any"},
        {"library": "micro", "cpu": "any"},
        {"requantize_dense": "double-rounding", "requantize_dense_wide": "wide-rounding", "scale_type": "float64"},
    ),
    Row(
        "tflm-cmsis-nn",
        "TensorFlow Lite Micro with CMSIS-NN's kernels as they are built by default. Plain C, the DSP extension "
        "(Cortex-M4) and MVE (Cortex-M55) give the same bits: those of the reference kernels except in CONV_2D, "
        "FULLY_CONNECTED and UNIDIRECTIONAL_SEQUENCE_LSTM.",
        "tflm",
        {"resolver": "CMSIS-NN 99f736a kernels", "cpu": "Cortex-M"},
        {"library": "cmsis-nn"},
    ),
    Row(
        "tflm-cmsis-nn-single",
        "As `tflm-cmsis-nn`, the library built with CMSIS_NN_USE_SINGLE_ROUNDING. Its own kernels round once; those "
        "that TensorFlow Lite Micro falls back to still round twice.",
        "tflm-cmsis-nn",
        {"resolver": "CMSIS-NN 99f736a kernels, single rounding"},
        {"library": "cmsis-nn-single"},
    ),
    Row(
        "tflm-esp-nn",
        "TensorFlow Lite Micro with ESP-NN's kernels, in C: the bits of the reference kernels. Portable and optimized "
        "C agree. Vector code of the ESP32-S3 and ESP32-P4 is not claimed. TensorFlow Lite Micro does not pass dilated "
        "convolutions on. Source: ESP-NN d45b843, esp_nn_multiply_by_quantized_mult.",
        "tflm",
        {"resolver": "ESP-NN d45b843 kernels", "cpu": "any, in C"},
        {"library": "esp-nn"},
    ),
    Row(
        "spec",
        "The arithmetic that is meant: `litert-ref` with its known faults fixed (tflq/profiles/faults.py). No runtime "
        "computes it. It is for those who build one: where it differs from `litert-ref`, the runtime is at fault.",
        "litert-ref",
        {"package": "none", "version": "as LiteRT 2.3.0", "resolver": "none", "cpu": "any"},
        {"library": "spec", "cpu": "any"},
    ),
)
