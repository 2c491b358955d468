"""What r1.15's resolvers register: for every operator the versions from 1 up to the one given here.

Read from the released 1.15.5 wheel (optimized resolver) by asking it for every operator and version. The reference
resolver knows nearly everything in version 1 only, and some operators not at all.
Source: TensorFlow r1.15 lite/kernels/register.cc, register_ref.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.exactness import close
from tflq.kernels.kernel import Kernel
from tflq.kernels.table import KernelTable
from tflq.kernels.tables.registered import registered

_ONCE = (
    "ABS ADD_N CAST CEIL COS DEPTH_TO_SPACE DIV ELU EMBEDDING_LOOKUP_SPARSE EXP EXPAND_DIMS FILL FLOOR FLOOR_MOD "
    "GATHER_ND HARD_SWISH HASHTABLE_LOOKUP IF L2_POOL_2D LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND "
    "LOGICAL_NOT LOGICAL_OR LSH_PROJECTION MATRIX_DIAG MATRIX_SET_DIAG MIRROR_PAD NEG ONE_HOT POW PRELU RANGE "
    "RANK REDUCE_ANY REDUCE_PROD RELU RELU_N1_TO_1 RESHAPE REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SHAPE SIN "
    "SKIP_GRAM SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE TILE TRANSPOSE_CONV UNIQUE WHERE WHILE ZEROS_LIKE"
)
_TWICE = (
    "ADD ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_TO_SPACE_ND BIDIRECTIONAL_SEQUENCE_RNN CONCATENATION EQUAL "
    "FAKE_QUANT FLOOR_DIV GREATER GREATER_EQUAL L2_NORMALIZATION LESS LESS_EQUAL LOGISTIC LOG_SOFTMAX MAXIMUM "
    "MAX_POOL_2D MEAN MINIMUM NOT_EQUAL PACK PAD PADV2 QUANTIZE REDUCE_MAX REDUCE_MIN RELU6 RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR RNN SELECT SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH STRIDED_SLICE SUB SUM SVDF TANH "
    "TOPK_V2 UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN UNPACK"
)
_THRICE = (
    "BIDIRECTIONAL_SEQUENCE_LSTM CONV_2D DEPTHWISE_CONV_2D EMBEDDING_LOOKUP GATHER LSTM MUL SLICE SPARSE_TO_DENSE "
    "SPLIT TRANSPOSE"
)

#: The optimized resolver's highest versions.
OPTIMIZED: Mapping[str, int] = {
    **dict.fromkeys(_ONCE.split(), 1),
    **dict.fromkeys(_TWICE.split(), 2),
    **dict.fromkeys(_THRICE.split(), 3),
    "DEQUANTIZE": 4,
    "FULLY_CONNECTED": 6,
}
#: The reference resolver's.
REFERENCE: Mapping[str, int] = {
    **{op: 1 for op in OPTIMIZED if op not in ("GATHER_ND", "MATRIX_DIAG", "MATRIX_SET_DIAG", "RANK")},
    **dict.fromkeys(("DEPTHWISE_CONV_2D", "DEQUANTIZE", "FULLY_CONNECTED", "LSTM"), 2),
}


#: Element types that came later; DEQUANTIZE alone took float16.
_LATER = (
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.INT2,
    TensorType.INT4,
    TensorType.UINT4,
    TensorType.UINT16,
    TensorType.UINT32,
    TensorType.UINT64,
)
#: The operators that computed on int16; those that only move elements name it among others.
_ON_INT16 = frozenset(["ADD", "LOGISTIC", "MUL", "SUB", "TANH"])
#: Signed or all quantized forms that came later.
_NOT_YET: Mapping[str, tuple[TensorType, ...]] = {
    **dict.fromkeys(("LEAKY_RELU", "PRELU", "DIV"), (TensorType.INT8,)),
    "RELU": (TensorType.UINT8, TensorType.INT8),
}
#: Float operators that select or move, and round nothing.
_ROUNDS_NOTHING = frozenset(
    ["ABS", "FLOOR", "MAXIMUM", "MINIMUM", "NEG", "PAD", "PADV2", "RELU", "RELU6", "RELU_N1_TO_1"]
)
_FLOAT = close("r1.15's float kernels are not modelled: sums go in the order of LiteRT's reference")


def _knows(row: Kernel) -> bool:
    first = row.signature.slots[0]
    if row.op != "DEQUANTIZE" and first.is_only(*_LATER):
        return False
    if first.is_only(TensorType.INT16) and row.op not in _ON_INT16:
        return False
    return not any(first.names(type_) for type_ in _NOT_YET.get(row.op, ()))


def _promised(row: Kernel) -> Kernel | None:
    """Return the row with its promise, or None if its types came after r1.15."""
    if not _knows(row):
        return None
    is_float = row.signature.starts_with(TensorType.FLOAT32) and row.signature.is_float
    return replace(row, exactness=_FLOAT) if is_float and row.op not in _ROUNDS_NOTHING else row


def accepted(base: KernelTable, highest: Mapping[str, int]) -> KernelTable:
    """The rows of `base` for operators and versions that a resolver registers, and types that were known then.

    Of float operators no bits are promised.
    """
    return registered(base, highest, _promised)
