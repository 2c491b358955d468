"""What a runtime's float results can be promised to be, where other builds of the same source are known to differ."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.exactness import Exactness
from tflq.kernels.kernel import Kernel

#: Not CEIL, FLOOR and MAX_POOL_2D, whose vector code treats subnormals and NaN in its own way.
#: Operators whose floats are moved, compared or chosen, or made by one operation that IEEE 754 rounds: alike anywhere.
ONE_ROUNDING_AT_MOST = frozenset(
    (
        "ABS",
        "ADD",
        "ARG_MAX",
        "ARG_MIN",
        "ASSIGN_VARIABLE",
        "BATCH_TO_SPACE_ND",
        "BITCAST",
        "BROADCAST_TO",
        "CALL",
        "CALL_ONCE",
        "CAST",
        "CONCATENATION",
        "CUSTOM",
        "DENSIFY",
        "DEPTH_TO_SPACE",
        "DEQUANTIZE",
        "DIV",
        "DYNAMIC_UPDATE_SLICE",
        "EMBEDDING_LOOKUP",
        "EQUAL",
        "EXPAND_DIMS",
        "FILL",
        "GATHER",
        "GATHER_ND",
        "GREATER",
        "GREATER_EQUAL",
        "IF",
        "LESS",
        "LESS_EQUAL",
        "MATRIX_DIAG",
        "MATRIX_SET_DIAG",
        "MAXIMUM",
        "MINIMUM",
        "MIRROR_PAD",
        "MUL",
        "NEG",
        "NOT_EQUAL",
        "ONE_HOT",
        "PACK",
        "PAD",
        "PADV2",
        "READ_VARIABLE",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "RELU",
        "RELU6",
        "RELU_0_TO_1",
        "RELU_N1_TO_1",
        "RESHAPE",
        "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_SEQUENCE",
        "REVERSE_V2",
        "ROUND",
        "SCATTER_ND",
        "SELECT",
        "SELECT_V2",
        "SIGN",
        "SLICE",
        "SPACE_TO_BATCH_ND",
        "SPACE_TO_DEPTH",
        "SPARSE_TO_DENSE",
        "SPLIT",
        "SPLIT_V",
        "SQRT",
        "SQUARE",
        "SQUEEZE",
        "STABLEHLO_CASE",
        "STABLEHLO_COMPOSITE",
        "STRIDED_SLICE",
        "SUB",
        "TILE",
        "TOPK_V2",
        "TRANSPOSE",
        "UNIQUE",
        "UNPACK",
        "WHERE",
        "WHILE",
        "ZEROS_LIKE",
    )
)


def floats_are_close(exactness: Exactness, also: Collection[str] = ()) -> Callable[[Kernel], Kernel]:
    """Return the change of a row that promises `exactness` only of floats that several operations make of floats.

    `also` names operators whose floats are not exact even though they round once.
    """
    exact = ONE_ROUNDING_AT_MOST.difference(also)

    def promised(row: Kernel) -> Kernel:
        is_exact = row.op in exact or not makes_floats_of_floats(row)
        return row if is_exact else replace(row, exactness=exactness)

    return promised


def makes_floats_of_floats(kernel: Kernel) -> bool:
    """Whether both sides of the row's signature name float32."""
    return kernel.signature.reads(TensorType.FLOAT32) and kernel.signature.makes(TensorType.FLOAT32)
