"""The tables of the optimized resolver's own kernels on x86-64, by release."""

from __future__ import annotations

from tflq.kernels.table import catalogue

_PACKAGE = "tflq.kernels.optimized"

#: Releases up to 2.14: gemmlowp multiplies uint8, no vector code besides ruy's.
OPTIMIZED_2_14 = catalogue(
    _PACKAGE,
    {
        "BATCH_MATMUL": "batch_matmul_1_2 unclaimed",
        "CONV_2D": "conv_2d conv_2d_float unclaimed",
        "CONV_3D": "conv_3d_2_14",
        "CONV_3D_TRANSPOSE": "unclaimed",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d_float_2_14 unclaimed",
        "FULLY_CONNECTED": "fully_connected fully_connected_int16 fully_connected_float_2_14 unclaimed",
        "HARD_SWISH": "unclaimed",
        "L2_POOL_2D": "unclaimed",
        "LOCAL_RESPONSE_NORMALIZATION": "unclaimed",
        "LOG_SOFTMAX": "log_softmax unclaimed",
        "LOGISTIC": "logistic unclaimed",
        "MEAN": "mean unclaimed",
        "QUANTIZE": "quantize_scalar",
        "REDUCE_PROD": "reduce_prod_2_14",
        "RESIZE_BILINEAR": "resize_bilinear unclaimed",
        "SOFTMAX": "softmax softmax_float",
        "SUM": "sum_2_14 unclaimed",
        "TANH": "tanh unclaimed",
        "TRANSPOSE_CONV": "unclaimed",
    },
)

#: The same releases on x86-64: Eigen for a CPU without SSE4.1.
OPTIMIZED_2_14_X86 = catalogue(_PACKAGE, {"CEIL": "rounding_2_14", "FLOOR": "rounding_2_14"})

#: Releases up to 2.12, over what they compute in their own way in either resolver.
OPTIMIZED_2_12 = catalogue(_PACKAGE, {"MEAN": "mean_2_12"})

#: Releases up to 2.9, likewise.
OPTIMIZED_2_9 = catalogue(_PACKAGE, {"BATCH_MATMUL": "batch_matmul_1_4", "FULLY_CONNECTED": "fully_connected_2_9"})

#: 2.12 on x86-64, whose package has the NEON code by way of SSE.
OPTIMIZED_2_12_VECTORS = catalogue(
    _PACKAGE,
    {
        "ADD": "add",
        "CONV_2D": "matrix_vector_2_12",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d",
        "DEQUANTIZE": "dequantize",
        "FULLY_CONNECTED": "matrix_vector_2_12",
        "LSTM": "matrix_vector_2_12",
        "MUL": "mul",
        "QUANTIZE": "quantize",
        "TRANSPOSE_CONV": "transpose_conv_2_12",
    },
)

#: Releases up to 2.5 on x86-64, over that.
OPTIMIZED_2_5_VECTORS = catalogue(
    _PACKAGE,
    {
        "ADD": "add_2_5",
        "FULLY_CONNECTED": "matrix_vector_2_5",
        "MEAN": "mean_2_5",
        "TRANSPOSE_CONV": "transpose_conv_2_5",
    },
)

#: 2.5.
OPTIMIZED_2_5 = catalogue(_PACKAGE, {"LOG_SOFTMAX": "log_softmax_2_5"})

#: 2.3.
OPTIMIZED_2_3 = catalogue(
    _PACKAGE,
    {
        "ADD": "sums_2_3",
        "DIV": "refused_2_3",
        "LOG_SOFTMAX": "log_softmax_2_3",
        "LOGISTIC": "sigmoids_2_3",
        "MEAN": "mean_2_3",
        "RESIZE_BILINEAR": "resize_bilinear_2_3",
        "STRIDED_SLICE": "refused_2_3",
        "SUB": "sums_2_3",
        "SUM": "sums_2_3",
        "TANH": "sigmoids_2_3",
        "TRANSPOSE_CONV": "transpose_conv_2_3",
    },
)

#: LiteRT up to 2.0.
OPTIMIZED_2_0 = catalogue(_PACKAGE, {"REDUCE_PROD": "reduce_prod_2_14"})

#: LiteRT up to 1.2.
OPTIMIZED_1_2 = catalogue(_PACKAGE, {"BATCH_MATMUL": "batch_matmul_1_2"})

#: LiteRT up to 1.4.
OPTIMIZED_1_4 = catalogue(_PACKAGE, {"BATCH_MATMUL": "batch_matmul_1_4"})

#: LiteRT 2.3: ruy multiplies uint8 too; NEON code runs through SSE.
OPTIMIZED = catalogue(
    _PACKAGE,
    {
        "ADD": "add",
        "BATCH_MATMUL": "unclaimed",
        "CONV_2D": "conv_2d conv_2d_uint8 conv_2d_int16 conv_2d_hybrid conv_2d_float unclaimed",
        "CONV_3D": "unclaimed",
        "CONV_3D_TRANSPOSE": "unclaimed",
        "DEPTHWISE_CONV_2D": "depthwise_conv_2d depthwise_conv_2d_hybrid depthwise_conv_2d_float unclaimed",
        "DEQUANTIZE": "dequantize",
        "FULLY_CONNECTED": "fully_connected fully_connected_uint8 fully_connected_int16 fully_connected_int4 "
        "fully_connected_float unclaimed",
        "HARD_SWISH": "unclaimed",
        "L2_POOL_2D": "unclaimed",
        "LOCAL_RESPONSE_NORMALIZATION": "unclaimed",
        "LEAKY_RELU": "leaky_relu",
        "LOG_SOFTMAX": "log_softmax unclaimed",
        "LOGISTIC": "logistic eigen_functions narrow_functions",
        "MEAN": "mean mean_float",
        "MUL": "mul",
        "QUANTIZE": "quantize",
        "REDUCE_PROD": "reduce_prod",
        "RESIZE_BILINEAR": "resize_bilinear unclaimed",
        "SOFTMAX": "softmax softmax_float",
        "SUM": "sum unclaimed",
        "TANH": "tanh eigen_functions narrow_functions",
        "TRANSPOSE_CONV": "transpose_conv unclaimed",
    },
)
