"""The least version of an operator that takes operands of given types.

Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tflq.ir import Record, TensorType

#: Operator -> (least version for int8 data, least version for int16 data); 1 if it is not listed.
NEEDED: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "CONV_2D": (3, 1),
        "DEPTHWISE_CONV_2D": (3, 1),
        "FULLY_CONNECTED": (4, 1),
        "TRANSPOSE_CONV": (2, 2),
        "SVDF": (3, 1),
        "ADD": (2, 3),
        "SUB": (2, 5),
        "ABS": (2, 3),
        "MUL": (2, 4),
        "GATHER": (2, 4),
        "GATHER_ND": (1, 3),
        "TRANSPOSE": (2, 5),
        "SPLIT": (2, 4),
        "SLICE": (2, 4),
        "UNPACK": (2, 4),
        "PACK": (2, 3),
        "MAXIMUM": (2, 4),
        "MINIMUM": (2, 4),
        "REVERSE_V2": (3, 1),
        "TILE": (3, 1),
        "SPARSE_TO_DENSE": (3, 1),
        "LEAKY_RELU": (1, 2),
        "EQUAL": (2, 5),
        "NOT_EQUAL": (2, 4),
        "FILL": (3, 3),
        "BROADCAST_TO": (3, 3),
        "DYNAMIC_UPDATE_SLICE": (1, 4),
        **dict.fromkeys(
            (
                "AVERAGE_POOL_2D",
                "BATCH_MATMUL",
                "CONCATENATION",
                "LESS",
                "GREATER_EQUAL",
                "LOGISTIC",
                "MAX_POOL_2D",
                "MEAN",
                "MIRROR_PAD",
                "PAD",
                "PADV2",
                "REDUCE_MAX",
                "REDUCE_MIN",
                "RELU",
                "RELU6",
                "RSQRT",
                "SOFTMAX",
                "TANH",
                "TOPK_V2",
            ),
            (2, 3),
        ),
        **dict.fromkeys(
            ("BATCH_TO_SPACE_ND", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND"), (2, 4)
        ),
        **dict.fromkeys(
            (
                "ARG_MAX",
                "ARG_MIN",
                "DEPTH_TO_SPACE",
                "GREATER",
                "L2_NORMALIZATION",
                "LESS_EQUAL",
                "LOG_SOFTMAX",
                "SELECT",
                "SPACE_TO_DEPTH",
                "SPLIT_V",
                "SQUARED_DIFFERENCE",
                "STRIDED_SLICE",
                "SUM",
            ),
            (2, 1),
        ),
        **dict.fromkeys(("EXP", "LOG", "REDUCE_PROD", "SQRT"), (2, 2)),
        "GELU": (2, 1),
    }
)

#: Operators that multiply float data by int8 weights: versions for one scale and for one per channel.
HYBRID: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "CONV_2D": (2, 5),
        "DEPTHWISE_CONV_2D": (4, 6),
        "FULLY_CONNECTED": (9, 12),
        "BATCH_MATMUL": (4, 4),
        "EMBEDDING_LOOKUP": (1, 4),
    }
)

#: Operators that multiply int8 data by int4 weights: the version for this.
FOUR_BITS: Mapping[str, int] = MappingProxyType({"CONV_2D": 7, "DEPTHWISE_CONV_2D": 7, "FULLY_CONNECTED": 10})

#: Operators that multiply float data by int4 weights with block scales. The source requires no newer version than for
#: floats. Runtimes with this version take int4 weights, and older ones refuse it.
FOUR_BITS_OF_FLOATS: Mapping[str, int] = MappingProxyType({"FULLY_CONNECTED": 13})

#: Operators that older runtimes take with 8-bit data of one sign only: uint8 needs the version of int8.
UINT8_AS_INT8 = frozenset({"ABS", "GELU", "RELU", "SPARSE_TO_DENSE", "UNPACK"})

#: The least version of a MUL whose product of input scales is not below the output's scale.
MUL_BY_ONE_OR_MORE = 3


def needed(op: str, types: Sequence[TensorType | None], *, per_channel: bool = False) -> int:
    """Return the version that an operator needs for inputs of those types and its number of scales."""
    data = next((t for t in types if t in (TensorType.INT8, TensorType.INT16, TensorType.UINT8)), None)
    if TensorType.FLOAT32 in types:
        if TensorType.INT4 in types:
            return FOUR_BITS_OF_FLOATS.get(op, 1)
        return HYBRID.get(op, (1, 1))[per_channel] if data is not None else 1
    if TensorType.INT4 in types:
        return FOUR_BITS.get(op, 1)
    eight, sixteen = NEEDED.get(op, (1, 1))
    if data == TensorType.INT16:
        return sixteen
    if data == TensorType.UINT8:
        return eight if op in UINT8_AS_INT8 else 1
    return eight if data is not None else 1


def dequantize_version(type_: TensorType, channels: int) -> int:
    """Return the version of a DEQUANTIZE from that type, given the number of its scales."""
    if type_ in (TensorType.INT16, TensorType.FLOAT16):
        return 3
    if type_ == TensorType.INT8:
        return 5 if channels > 1 else 2
    return 1


def quantize_version(source: TensorType, result: TensorType) -> int:
    """Return the version of a QUANTIZE between those types."""
    return 2 if TensorType.INT16 in (source, result) else 1


def structure_version(op: str, options: Record | None, inputs: int) -> int:
    """Return the version that the operator's options and number of inputs need, for any types."""
    if op == "FULLY_CONNECTED":
        return 6 if inputs == 2 else 5 if options is not None and options.get("keep_num_dims") else 1
    if op == "TRANSPOSE_CONV":
        return 3 if inputs == 4 else 1
    return 1
