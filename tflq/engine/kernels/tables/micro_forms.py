"""Forms, constants and ranks that TensorFlow Lite Micro's kernels accept, as data.

Source: tflite-micro (August and October 2026), the type switches and Prepare of its kernels; each form was asked of
the package of 23 October 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_COMPARED = "float32|int8|int32|int64 any -> bool"
_MOVED_8 = "float32|int8 any* -> any"
_FLOATS = "float32 any* -> any"
_PADDED = "float32|int8|int16|int32 int32 any* -> any"
_ARITHMETIC = "float32|int8|int16|int32 any -> float32|int8|int16|int32"

#: Operator -> the only forms that are taken, where these are fewer than LiteRT's. What a form leaves open has no limit.
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ABS": ("float32|int8|int16 -> any",),
        "ADD": (_ARITHMETIC,),
        "ADD_N": ("float32|int8* -> any",),
        "ARG_MAX": ("float32|int8 int32 -> int32",),
        "ARG_MIN": ("float32|int8 int32 -> int32",),
        "BATCH_MATMUL": ("float32 float32 -> any", "int8 int8 -> int8", "int16 int16 -> int16"),
        "BATCH_TO_SPACE_ND": (_MOVED_8,),
        "CAST": ("bool|float32|int8|int16|int32|uint32 -> bool|float32|int8|int16|int32|uint32",),
        "CONCATENATION": ("bool|float32|int8|int16|int32|int64* -> any",),
        "CONV_2D": ("float32 float32 float32? -> any", "int8 int8|int4 int32 -> any", "int16 int8 int32|int64 -> any"),
        "COS": (_FLOATS,),
        "CUMSUM": (_MOVED_8,),
        "DEPTHWISE_CONV_2D": (
            "float32 float32 float32? -> any",
            "int8 int8|int4 int32? -> any",
            "int16 int8 int64? -> any",
        ),
        "DEPTH_TO_SPACE": (_MOVED_8,),
        "DEQUANTIZE": ("int8|uint8|int16 -> any",),
        "DIV": ("float32|int8|int32 any -> any",),
        "DYNAMIC_UPDATE_SLICE": ("float32|int8|int16|int32 any any -> any",),
        "EMBEDDING_LOOKUP": ("int32 float32 -> float32", "int32 int8 -> float32|int8"),
        "EQUAL": ("bool|float32|int8|int32|int64 any -> bool",),
        "EXP": (_FLOATS,),
        "EXPAND_DIMS": ("float32|int8|int16 int32 -> any",),
        "FILL": ("int32|int64 float32|int8|int32 -> any",),
        "FLOOR": (_FLOATS,),
        "FLOOR_DIV": (_FLOATS,),
        "FLOOR_MOD": (_FLOATS,),
        "FULLY_CONNECTED": (
            "float32 float32 float32? -> any",
            "int8 int8|int4 int32? -> int8",
            "int16 int8 int32|int64? -> any",
        ),
        "GATHER": ("float32|int8 int32 -> any",),
        "GATHER_ND": ("float32|int8 int32 -> any",),
        "GREATER": ("float32|int8|int16|int32|int64 any -> bool",),
        "GREATER_EQUAL": (_COMPARED,),
        "LESS": (_COMPARED,),
        "LESS_EQUAL": (_COMPARED,),
        "LOG": (_FLOATS,),
        "LOGISTIC": ("float32|int8|int16 -> any",),
        "MAXIMUM": ("float32|int8|int16|int32|int64 any -> any",),
        "MINIMUM": ("float32|int8|int16|int32|int64 any -> any",),
        "MIRROR_PAD": (_MOVED_8,),
        "MUL": (
            "float32 float32 -> any",
            "int8 int8 -> int8",
            "int16 int16 -> int8|uint8|int16",
            "int32 int32 -> int32",
        ),
        "NEG": (_FLOATS,),
        "NOT_EQUAL": ("bool|float32|int8|int32|int64 any -> bool",),
        "PACK": ("float32|int8|int16|int32|int64* -> any",),
        "PAD": (_PADDED,),
        "PADV2": (_PADDED,),
        "REDUCE_MAX": (_MOVED_8,),
        "REDUCE_MIN": (_MOVED_8,),
        "RESIZE_NEAREST_NEIGHBOR": ("float32|int8|int16 any -> any",),
        "REVERSE_V2": ("bool|float32|int8|uint8|int16|int32|int64 any -> any",),
        "ROUND": (_FLOATS,),
        "SELECT_V2": ("bool float32|int8|int16 any -> any",),
        "SHAPE": ("any -> int32",),
        "SIN": (_FLOATS,),
        "SLICE": ("bool|float32|int8|int16|int32 any any -> any",),
        "SOFTMAX": ("float32 -> float32", "int8 -> int8|int16", "int16 -> int16"),
        "SPACE_TO_BATCH_ND": (_MOVED_8,),
        "SPACE_TO_DEPTH": (_MOVED_8,),
        "SPLIT": ("int32 float32|int8|int16|int32 -> any*",),
        "SPLIT_V": ("float32|int8|int16|int32 any any -> any*",),
        "SQRT": (_FLOATS,),
        "STRIDED_SLICE": ("bool|float32|int8|int16|int32 any any any -> any",),
        "SUB": (_ARITHMETIC,),
        "TANH": ("float32|int8|int16 -> any",),
        "TRANSPOSE": ("float32|int8|int16 int32 -> any",),
        "UNPACK": ("float32|int8|int16|int32 -> any*",),
    }
)
#: Operator -> positions of operands that have to be constant.
CONSTANT: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "BROADCAST_TO": (1,),
        "EXPAND_DIMS": (1,),
        "FILL": (0,),
        "PAD": (1,),
        "PADV2": (1,),
        "RESIZE_BILINEAR": (1,),
        "RESIZE_NEAREST_NEIGHBOR": (1,),
        "SPLIT": (0,),
        "SPLIT_V": (2,),
        "STRIDED_SLICE": (1, 2, 3),
        "TRANSPOSE": (1,),
    }
)
#: Operator -> the most dimensions of its first operand.
RANK: Mapping[str, int] = MappingProxyType({"BROADCAST_TO": 5, "STRIDED_SLICE": 4, "TRANSPOSE": 5})
#: Positions of an LSTM's operands: all that it may have, and those that have to be absent.
LSTM_OPERANDS, LSTM_PRESENT, LSTM_ABSENT = 24, (*range(9), *range(12, 16)), (*range(9, 12), 16, 17, *range(20, 24))
#: Operators with a bias of their own -> its position: no zero point is looked at, none of 16-bit data either.
BIASED: Mapping[str, int] = MappingProxyType({"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "TRANSPOSE_CONV": 3})
#: Operators that move codes of the first operand, whose scales and zero points are not compared.
MOVED = frozenset({"BATCH_TO_SPACE_ND", "EXPAND_DIMS", "MIRROR_PAD", "PACK", "UNPACK"})
