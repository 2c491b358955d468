"""The tables of AArch64's own kernels, by release and resolver; they lie over those of x86-64."""

from __future__ import annotations

from tflq.kernels.table import catalogue

_PACKAGE = "tflq.kernels.arm64"

#: The reference resolver of LiteRT 2.3.
REFERENCE_ARM64 = catalogue(
    _PACKAGE, {"FULLY_CONNECTED": "fully_connected_hybrid", "LSTM": "lstm", "RELU": "float_limits"}
)

#: The optimized resolver of LiteRT 2.3.
OPTIMIZED_ARM64 = catalogue(
    _PACKAGE,
    {
        "ADD": "float_limits",
        "CONV_2D": "conv_2d",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d_uint8",
        "FULLY_CONNECTED": "fully_connected fully_connected_hybrid",
        "HARD_SWISH": "hard_swish",
        "LSTM": "lstm",
        "MUL": "float_limits",
        "RELU": "float_limits",
        "SOFTMAX": "softmax softmax_float",
        "SUB": "float_limits",
    },
)

#: The reference resolver of releases up to 2.14.
REFERENCE_2_14_ARM64 = catalogue(
    _PACKAGE,
    {
        "ADD": "float_limits_2_14_reference",
        "CONCATENATION": "concatenation_factored",
        "DIV": "float_limits_2_14_reference",
        "FULLY_CONNECTED": "fully_connected_hybrid_2_14",
        "LSTM": "lstm_gemmlowp",
        "MAXIMUM": "float_limits_2_14_reference",
        "MINIMUM": "float_limits_2_14_reference",
        "MUL": "float_limits_2_14_reference",
        "QUANTIZE": "quantize_reciprocal",
        "RELU": "float_limits_2_14_reference",
        "RELU6": "float_limits_2_14_reference",
        "SUB": "float_limits_2_14_reference",
    },
)

#: The vector code that releases up to 2.14 have on AArch64 and not on x86-64.
VECTOR_CODE_2_14 = catalogue(
    "tflq.kernels.optimized",
    {
        "ADD": "add",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d",
        "DEQUANTIZE": "dequantize",
        "MUL": "mul",
        "QUANTIZE": "quantize",
    },
)

#: The optimized resolver of releases up to 2.14, over its vector code.
OPTIMIZED_2_14_ARM64 = catalogue(
    _PACKAGE,
    {
        "ADD": "float_limits_2_14",
        "CONCATENATION": "concatenation_factored",
        "CONV_2D": "conv_2d_gemmlowp",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d_uint8",
        "DIV": "float_limits_2_14",
        "FULLY_CONNECTED": "fully_connected_gemmlowp fully_connected_hybrid_2_14",
        "HARD_SWISH": "hard_swish",
        "LSTM": "lstm_gemmlowp",
        "MAXIMUM": "float_limits_2_14",
        "MINIMUM": "float_limits_2_14",
        "MUL": "float_limits_2_14",
        "SOFTMAX": "softmax_float",
        "RELU": "float_limits_2_14",
        "RELU6": "float_limits_2_14",
        "SUB": "float_limits_2_14",
        "TRANSPOSE_CONV": "transpose_conv_2_14",
    },
)
