"""`tflite-2.12-xnnpack`: tflite-runtime 2.12.0, BUILTIN, x86-64, one thread: XNNPACK takes int8, and no uint8."""

from __future__ import annotations

from dataclasses import replace

from tflq.kernels.earlier.releases import in_optimized
from tflq.kernels.xnnpack.delegation import without_uint8
from tflq.kernels.xnnpack.registry import HYBRID, xnnpack_over
from tflq.profiles.tflite_2_12_opt import TFLITE_2_12_OPTIMIZED

TFLITE_2_12_XNNPACK = TFLITE_2_12_OPTIMIZED.derive(
    name="tflite-2.12-xnnpack",
    source=replace(TFLITE_2_12_OPTIMIZED.source, resolver="BUILTIN"),
    kernels=without_uint8(
        xnnpack_over(
            TFLITE_2_12_OPTIMIZED.kernels,
            ("batch_matmul", "elementwise", "extremes", "logistic", "sum", *HYBRID),
            instead={"MEAN": "mean_1_0", "TRANSPOSE_CONV": "transpose_conv_2_12"},
        )
    ),
).within(in_optimized("2.12"))
