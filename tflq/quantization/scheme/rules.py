"""Requirements of the TFLite 8-bit quantization specification and LiteRT's kernels on each operator's operands.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/*.cc, their Prepare functions. The element
types that a kernel takes are defined elsewhere: in the kernel table of profile `litert-ref`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.ir import TensorType


@dataclass(frozen=True, slots=True)
class Weights:
    """Constant operands of a multiply-accumulate: their positions, and the dimension of the weights' channels.

    `axis` None: one scale for all. `bias` None: the operator has none.
    """

    data: int
    weights: int
    axis: int | None
    bias: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one operator. By default, its float operands are activations with scales of their own.

    `tied` are the inputs whose codes become output codes, so that scale and zero point must be equal (None: none, an
    empty tuple: all of them). `weights` are all that may be constants of another kind. `narrow` are inputs that have 8
    bits and zero point 0 if data have 16. `fills` is set if the kernel writes code 0 for the value 0.
    """

    tied: tuple[int, ...] | None = None
    weights: Weights | None = None
    narrow: tuple[int, ...] = ()
    fills: bool = False


FREE, MOVES, JOINS = Rule(), Rule(tied=(0,)), Rule(tied=())

#: Operator -> rule, for all operators with a kernel that reads codes as scaled numbers.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "CONV_2D": Rule(weights=Weights(0, 1, 0, 2)),
        "DEPTHWISE_CONV_2D": Rule(weights=Weights(0, 1, 3, 2)),
        "FULLY_CONNECTED": Rule(weights=Weights(0, 1, 0, 2)),
        "TRANSPOSE_CONV": Rule(weights=Weights(2, 1, 0, 3)),
        "BATCH_MATMUL": Rule(weights=Weights(0, 1, None)),
        **dict.fromkeys(
            (
                "ABS",
                "ADD",
                "ARG_MAX",
                "ARG_MIN",
                "DIV",
                "ELU",
                "EQUAL",
                "EXP",
                "GELU",
                "GREATER",
                "GREATER_EQUAL",
                "HARD_SWISH",
                "L2_NORMALIZATION",
                "LEAKY_RELU",
                "LESS",
                "LESS_EQUAL",
                "LOG",
                "LOGISTIC",
                "LOG_SOFTMAX",
                "MEAN",
                "MUL",
                "NEG",
                "NOT_EQUAL",
                "REDUCE_PROD",
                "RELU",
                "RELU6",
                "RELU_0_TO_1",
                "RELU_N1_TO_1",
                "RSQRT",
                "SOFTMAX",
                "SQRT",
                "SQUARED_DIFFERENCE",
                "SUB",
                "SUM",
                "TANH",
            ),
            FREE,
        ),
        **dict.fromkeys(
            (
                "AVERAGE_POOL_2D",
                "BATCH_TO_SPACE_ND",
                "BROADCAST_TO",
                "DEPTH_TO_SPACE",
                "EXPAND_DIMS",
                "GATHER",
                "GATHER_ND",
                "MAX_POOL_2D",
                "MIRROR_PAD",
                "PAD",
                "REDUCE_MAX",
                "REDUCE_MIN",
                "RESHAPE",
                "RESIZE_BILINEAR",
                "RESIZE_NEAREST_NEIGHBOR",
                "REVERSE_SEQUENCE",
                "REVERSE_V2",
                "SLICE",
                "SPACE_TO_BATCH_ND",
                "SPACE_TO_DEPTH",
                "SPLIT_V",
                "SQUEEZE",
                "STRIDED_SLICE",
                "TILE",
                "TOPK_V2",
                "TRANSPOSE",
                "UNPACK",
            ),
            MOVES,
        ),
        **dict.fromkeys(("CONCATENATION", "MAXIMUM", "MINIMUM", "PACK"), JOINS),
        "PRELU": Rule(narrow=(1,)),
        **dict.fromkeys(("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"), FREE),  # see cells.py, svdf.py
        "DYNAMIC_UPDATE_SLICE": Rule(tied=(0, 1)),
        "MATRIX_DIAG": Rule(tied=(0,), fills=True),
        "MATRIX_SET_DIAG": Rule(tied=(0, 1)),
        "SCATTER_ND": Rule(tied=(1,), fills=True),
        "PADV2": Rule(tied=(0, 2)),
        "SELECT": Rule(tied=(1, 2)),
        "SELECT_V2": Rule(tied=(1, 2)),
        "EMBEDDING_LOOKUP": Rule(tied=(1,)),
        "FILL": Rule(tied=(1,)),
        "SPLIT": Rule(tied=(1,)),
        "ONE_HOT": Rule(tied=(2, 3)),
        "SPARSE_TO_DENSE": Rule(tied=(2, 3)),
    }
)

#: Operators that copy rows of a table -> its position. If data stay float, constant tables are stored in 8 bits, with a
#: scale for each row.
TABLES: Mapping[str, int] = MappingProxyType({"EMBEDDING_LOOKUP": 1, "GATHER": 0})

#: Operators that read only shapes: they take a tensor in the form in which it is produced.
READS_SHAPES = frozenset({"RANK", "SHAPE"})
#: Operators that change a tensor's form without computing.
CONVERSIONS = frozenset({"DENSIFY", "DEQUANTIZE", "QUANTIZE"})

#: Operators with an integer kernel that still stay in float, and the reason.
KEPT_FLOAT: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "BITCAST",
                "BITWISE_XOR",
                "CAST",
                "FLOOR_DIV",
                "FLOOR_MOD",
                "REDUCE_WINDOW",
                "RIGHT_SHIFT",
                "STABLEHLO_ADD",
                "STABLEHLO_AND",
                "STABLEHLO_MAXIMUM",
                "STABLEHLO_MINIMUM",
                "STABLEHLO_MULTIPLY",
                "STABLEHLO_REDUCE_WINDOW",
                "STABLEHLO_SHIFT_LEFT",
            ),
            "its integer kernel computes with unscaled codes",
        ),
        **dict.fromkeys(
            ("DILATE", "STABLEHLO_GATHER", "STABLEHLO_PAD", "STABLEHLO_SCATTER"),
            "its integer kernel copies codes without a scale",
        ),
        "WHERE": "values near 0 could become 0, and the output's shape depends on which do",
        "UNIQUE": "different values could share a code, and the output's shape depends on which do",
        **dict.fromkeys(
            ("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"),
            "LiteRT has no kernel for integer activations",
        ),
        "LSH_PROJECTION": "its kernel hashes bytes",
        "NumericVerify": "it compares with float values",
        "TFLite_Detection_PostProcess": "its quantized kernel returns float values",
        "HASHTABLE_LOOKUP": "its kernel copies bytes",
        "aeq.hadamard_rotation": "its kernel transforms floats",
    }
)

#: (operator, type of data) -> error of kernels with wrong results.
#: Source: reduce.cc EvalSum, QuantizedMeanOrSum.
BROKEN: Mapping[tuple[str, TensorType], str] = MappingProxyType(
    {
        ("SUM", TensorType.INT8): "LiteRT's reference kernel reads int8 codes as uint8",
        ("SUM", TensorType.INT16): "LiteRT's kernel reads and writes int16 codes as uint8",
    }
)

#: (operator, output type) -> fixed scale and zero point of its kernel, which ignores those in the file.
#: Source: activations.cc SoftmaxPrepare, SigmoidPrepare, TanhPrepare, LogSoftmaxPrepare; l2norm.cc Prepare.
FIXED: Mapping[tuple[str, TensorType], tuple[float, int]] = MappingProxyType(
    {
        ("SOFTMAX", TensorType.INT8): (1 / 256, -128),
        ("SOFTMAX", TensorType.UINT8): (1 / 256, 0),
        ("SOFTMAX", TensorType.INT16): (1 / 32768, 0),
        ("LOGISTIC", TensorType.INT8): (1 / 256, -128),
        ("LOGISTIC", TensorType.UINT8): (1 / 256, 0),
        ("LOGISTIC", TensorType.INT16): (1 / 32768, 0),
        ("TANH", TensorType.INT8): (1 / 128, 0),
        ("TANH", TensorType.UINT8): (1 / 128, 128),
        ("TANH", TensorType.INT16): (1 / 32768, 0),
        ("L2_NORMALIZATION", TensorType.INT8): (1 / 128, 0),
        ("L2_NORMALIZATION", TensorType.UINT8): (1 / 128, 128),
        ("LOG_SOFTMAX", TensorType.INT8): (16 / 256, 127),
        ("LOG_SOFTMAX", TensorType.UINT8): (16 / 256, 255),
    }
)


def tied_inputs(op: str, count: int) -> tuple[int, ...]:
    """Return which of an operator's `count` inputs share scale and zero point with its output."""
    tied = RULES.get(op, FREE).tied
    if tied is None:
        return ()
    return tied or tuple(range(count))
