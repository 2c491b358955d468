"""Profiles of TensorFlow Lite Micro and the libraries on it, and of what is meant."""

from __future__ import annotations

from tflq.engine.profiles.rows.row import Row

ROWS = (
    Row(
        "tflm",
        "TensorFlow Lite Micro with its reference kernels, from the build of 13 October 2026 on.",
        "litert-ref",
        {"package": "tflite-micro", "version": "0.dev20261023", "resolver": "reference kernels", "cpu": "any"},
        {"library": "micro", "cpu": "any"},
        {"requantize_dense": "double-rounding", "requantize_dense_wide": "wide-rounding", "scale_type": "float64"},
    ),
    Row(
        "tflm-cmsis-nn",
        "TensorFlow Lite Micro with CMSIS-NN's kernels as they are built by default. Plain C, the DSP extension "
        "(Cortex-M4) and MVE (Cortex-M55) give the same bits: those of the reference kernels except in CONV_2D, "
        "FULLY_CONNECTED, UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF with an 8-bit state.",
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
        "tflm-2026.9",
        "TensorFlow Lite Micro with its reference kernels, before the build of 13 October 2026: real multipliers are "
        "computed in float32 in FULLY_CONNECTED with one scale, rectifiers, BATCH_MATMUL and SUB. Source: "
        "kernel_util.cc GetQuantizedConvolutionMultipler, activations_common.cc, leaky_relu_common.cc, sub_common.cc "
        "CalculateOpDataSub. Measured with the builds of 25 September and 12 October 2026.",
        "tflm",
        {"version": "0.dev20260925"},
        {},
        {
            "scale_type": "float32",
            "operand_scale_type": "float64",
            "difference_scale_type": "float32",
            "dense_real": "prepared",
        },
    ),
    Row(
        "tflm-2026.2",
        "TensorFlow Lite Micro with its reference kernels, as of February 2026: as `tflm-2026.9`, except that 16-bit "
        "FULLY_CONNECTED without a bias accumulates in 32 bits, in which sums wrap, integer TRANSPOSE_CONV has "
        "no fused activation, and RESIZE_NEAREST_NEIGHBOR no half_pixel_centers. The build of 8 August 2025 gives the "
        "same bits; that of 16 January 2025 accumulates in 64 bits.",
        "tflm-2026.9",
        {"version": "0.dev20260203"},
        {"release": "litert-2.1"},
    ),
    Row(
        "tflm-2026.9-cmsis-nn",
        "As `tflm-cmsis-nn`, in TensorFlow Lite Micro before the build of 13 October 2026. Measured with its source of "
        "20 August 2026, compiled by tools/build_micro.py.",
        "tflm-2026.9",
        {"resolver": "CMSIS-NN 99f736a kernels", "cpu": "Cortex-M"},
        {"library": "cmsis-nn"},
    ),
    Row(
        "tflm-2026.9-cmsis-nn-single",
        "As `tflm-cmsis-nn-single`, in TensorFlow Lite Micro before the build of 13 October 2026.",
        "tflm-2026.9-cmsis-nn",
        {"resolver": "CMSIS-NN 99f736a kernels, single rounding"},
        {"library": "cmsis-nn-single"},
    ),
    Row(
        "spec",
        "The arithmetic that is meant: `litert-ref` with its known faults fixed (profiles/faults.py). No runtime "
        "computes it. It is for those who build one: where it differs from `litert-ref`, the runtime is at fault.",
        "litert-ref",
        {"package": "none", "version": "as LiteRT 2.3.0", "resolver": "none", "cpu": "any"},
        {"library": "spec", "cpu": "any"},
    ),
)
