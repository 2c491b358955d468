"""Facts about operators."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Operators whose kernels are in the module or folder of `tflq.kernels` that has their name in small letters.
_BY_NAME = """
ABS ADD_N ATAN2 AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BITCAST BROADCAST_ARGS BROADCAST_TO BUCKETIZE CAST
CONCATENATION CONV_2D CONV_3D CONV_3D_TRANSPOSE CUMSUM DENSIFY DEPTH_TO_SPACE DEPTHWISE_CONV_2D DILATE
DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EMBEDDING_LOOKUP_SPARSE EXP EXPAND_DIMS FAKE_QUANT FILL FULLY_CONNECTED GATHER
GATHER_ND GELU HARD_SWISH L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LSH_PROJECTION
MATRIX_DIAG MATRIX_SET_DIAG MAX_POOL_2D Mfcc MUL NEG ONE_HOT PACK POW PRELU QUANTIZE RANGE RANK REDUCE_PROD
RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 RFFT2D SHAPE SIGN SKIP_GRAM SLICE
SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPARSE_TO_DENSE SPLIT SPLIT_V SQUARED_DIFFERENCE SQUEEZE STABLEHLO_GATHER STRIDED_SLICE
SVDF TILE TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNIQUE UNPACK WHERE ZEROS_LIKE
"""
#: Modules and folders with several operators, or with one that has another name.
_SHARED = {
    "add_sub": "ADD SUB",
    "arg_max_min": "ARG_MAX ARG_MIN",
    "audio_spectrogram": "AudioSpectrogram",
    "comparisons": "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL",
    "complex_numbers": "REAL IMAG COMPLEX_ABS",
    "control_flow": "CALL_ONCE IF WHILE STABLEHLO_CASE STABLEHLO_COMPOSITE",
    "detection_postprocess": "TFLite_Detection_PostProcess",
    "division": "DIV FLOOR_DIV FLOOR_MOD",
    "hadamard_rotation": "aeq.hadamard_rotation",
    "hashtables": "HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_LOOKUP HASHTABLE_SIZE",
    "logic": "LOGICAL_AND LOGICAL_OR LOGICAL_NOT STABLEHLO_AND BITWISE_XOR RIGHT_SHIFT STABLEHLO_SHIFT_LEFT",
    "lstm": "LSTM UNIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_LSTM",
    "maximum_minimum": "MAXIMUM MINIMUM",
    "mean_sum": "MEAN SUM",
    "non_max_suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
    "dequantize": "DEQUANTIZE NumericVerify",
    "pad": "MIRROR_PAD PAD PADV2 STABLEHLO_PAD",
    "random_numbers": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL MULTINOMIAL STABLEHLO_RNG_BIT_GENERATOR",
    "rectifiers": "RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1",
    "reduce_all_any": "REDUCE_ALL REDUCE_ANY",
    "reduce_max_min": "REDUCE_MAX REDUCE_MIN",
    "reduce_window": "REDUCE_WINDOW STABLEHLO_REDUCE_WINDOW",
    "rnn": "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN",
    "roots": "SQRT RSQRT SQUARE",
    "rounding": "CEIL FLOOR ROUND",
    "scatter": "SCATTER_ND STABLEHLO_SCATTER",
    "segments": "SEGMENT_SUM UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM",
    "select": "SELECT SELECT_V2",
    "sigmoids": "LOGISTIC TANH",
    "sinusoids": "SIN COS",
    "softmax": "SOFTMAX LOG_SOFTMAX",
    "stablehlo_arithmetic": "STABLEHLO_ADD STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_MINIMUM",
    "variables": "VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE",
}

#: The module or folder of each operator.
ROOMS: Mapping[str, str] = MappingProxyType(
    dict(
        sorted(
            [
                *((op, op.lower()) for op in _BY_NAME.split()),
                *((op, room) for room, ops in _SHARED.items() for op in ops.split()),
            ]
        )
    )
)
