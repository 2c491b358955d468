"""What the resolvers of release 2.14 register: operators, versions from 1 up to the one given here, element types.

Read from the released 2.14.0 wheel by asking it for every operator, version and type.
Source: TensorFlow 2.14 lite/kernels/register.cc, register_ref.cc, and the checks of each kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflq.ir import TensorType
from tflq.kernels.kernel import Kernel
from tflq.kernels.signature import Signature
from tflq.kernels.table import KernelTable
from tflq.kernels.tables.registered import registered

_VERSIONS = {
    1: "ADD_N ASSIGN_VARIABLE ATAN2 BITCAST BITWISE_XOR BROADCAST_ARGS BUCKETIZE CALL_ONCE CEIL COMPLEX_ABS CONV_3D "
    "CONV_3D_TRANSPOSE COS CUMSUM DENSIFY DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP_SPARSE EXPAND_DIMS FLOOR "
    "HARD_SWISH HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_LOOKUP HASHTABLE_SIZE IF IMAG L2_POOL_2D "
    "LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LSH_PROJECTION MATRIX_DIAG MATRIX_SET_DIAG "
    "MULTINOMIAL NEG NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 ONE_HOT POW PRELU RANDOM_STANDARD_NORMAL "
    "RANDOM_UNIFORM RANK READ_VARIABLE REAL REDUCE_ALL REDUCE_ANY RELU_0_TO_1 RELU_N1_TO_1 RESHAPE REVERSE_SEQUENCE "
    "RFFT2D RIGHT_SHIFT ROUND SCATTER_ND SEGMENT_SUM SHAPE SIN SKIP_GRAM SQRT SQUARE UNIQUE UNSORTED_SEGMENT_MAX "
    "UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM VAR_HANDLE WHILE ZEROS_LIKE",
    2: "DEPTH_TO_SPACE DIV EXP FAKE_QUANT FLOOR_MOD GELU GREATER L2_NORMALIZATION LEAKY_RELU LESS_EQUAL LOG_SOFTMAX "
    "RANGE REDUCE_PROD RSQRT SELECT_V2 SIGN SPACE_TO_DEPTH SPLIT_V SQUARED_DIFFERENCE SQUEEZE SUM WHERE",
    3: "ARG_MAX ARG_MIN AVERAGE_POOL_2D BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN BROADCAST_TO "
    "EMBEDDING_LOOKUP FLOOR_DIV GREATER_EQUAL LESS LOGISTIC MAX_POOL_2D MEAN MIRROR_PAD NOT_EQUAL QUANTIZE "
    "REDUCE_MAX REDUCE_MIN RELU RELU6 REVERSE_V2 RNN SOFTMAX SPARSE_TO_DENSE TANH TILE TOPK_V2 "
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    4: "BATCH_MATMUL BATCH_TO_SPACE_ND CONCATENATION EQUAL FILL GATHER_ND LSTM MAXIMUM MINIMUM PACK PAD PADV2 "
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SELECT SPACE_TO_BATCH_ND SPLIT SVDF TRANSPOSE_CONV "
    "UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK",
    5: "ABS ADD CAST DEQUANTIZE SUB",
    6: "GATHER SLICE TRANSPOSE",
    7: "CONV_2D DEPTHWISE_CONV_2D MUL",
    8: "STRIDED_SLICE",
    10: "FULLY_CONNECTED",
}
#: Which the reference resolver has one version less of, or which, having one, it lacks.
_ONE_LESS = (
    "ARG_MAX ARG_MIN BATCH_MATMUL CAST CEIL CONCATENATION CONV_2D CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE "
    "ELU FILL FULLY_CONNECTED HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE PACK QUANTIZE RANGE REVERSE_V2 "
    "RFFT2D ROUND SEGMENT_SUM SELECT_V2 SIGN SLICE SQUEEZE TILE TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM"
)

#: The optimized resolver's highest versions.
OPTIMIZED: Mapping[str, int] = {op: version for version, ops in _VERSIONS.items() for op in ops.split()}
#: The reference resolver's.
REFERENCE: Mapping[str, int] = {
    op: version
    for op, highest in {**OPTIMIZED, "ABS": 3, "SELECT": 2, "STRIDED_SLICE": 4}.items()
    if (version := highest - (op in _ONE_LESS.split()))
}

_MOVING = "BATCH_TO_SPACE_ND EMBEDDING_LOOKUP MIRROR_PAD SLICE SPACE_TO_BATCH_ND STRIDED_SLICE TILE TRANSPOSE"
#: Types of what an operator computes on that came later.
_LATER: Mapping[TensorType, frozenset[str]] = {
    TensorType[type_.upper()]: frozenset(ops.split())
    for type_, ops in {
        "bool": "BATCH_TO_SPACE_ND EMBEDDING_LOOKUP GATHER_ND MIRROR_PAD PAD PADV2 REDUCE_MAX REDUCE_MIN "
        "RESIZE_NEAREST_NEIGHBOR SPACE_TO_BATCH_ND",
        "int4": "CONCATENATION EMBEDDING_LOOKUP GATHER SLICE",
        "int8": "DIV LOG NEG SQRT",
        "uint8": "DYNAMIC_UPDATE_SLICE FILL",
        "int16": "DIV DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP GELU GREATER LESS_EQUAL LOG NEG NOT_EQUAL RSQRT SQRT TILE",
        "int32": "EMBEDDING_LOOKUP RESIZE_NEAREST_NEIGHBOR",
        "uint32": "BATCH_TO_SPACE_ND DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP FILL MIRROR_PAD RESIZE_NEAREST_NEIGHBOR "
        "SPACE_TO_BATCH_ND TILE TRANSPOSE",
        "int64": "EMBEDDING_LOOKUP SPLIT",
        "uint64": f"{_MOVING} FILL SELECT SELECT_V2",
        "float16": f"{_MOVING} ADD ATAN2 CONCATENATION COS EQUAL FLOOR GATHER GATHER_ND GELU GREATER GREATER_EQUAL "
        "LESS LESS_EQUAL LOGISTIC MAXIMUM MINIMUM MUL NEG NOT_EQUAL PAD PADV2 RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND "
        "SELECT SELECT_V2 SIN SOFTMAX TANH UNPACK",
        "float64": f"{_MOVING} FILL SELECT SELECT_V2",
        "complex64": f"{_MOVING} FILL SELECT SELECT_V2",
    }.items()
}
#: Forms that are narrower, or were not there, where that does not hang on one operand's type alone.
_FORMS: Mapping[tuple[str, Signature], Signature | None] = {
    (op, Signature.parse(types)): Signature.parse(left) if left else None
    for op, types, left in (
        ("BATCH_MATMUL", "int16 int8|int16 -> int16", "int16 int16 -> int16"),
        ("DEQUANTIZE", "int8|uint8|int16|int4 -> float32", "int8|uint8|int16 -> float32"),
        ("EMBEDDING_LOOKUP", "int32 int8|uint8|int4 -> float32", "int32 int8|uint8 -> float32"),
        ("FULLY_CONNECTED", "int16 int16 int32|int64? -> int16", ""),
        ("PRELU", "int16 int8 -> int16", ""),
        ("QUANTIZE", "int8|uint8 -> int8|uint8|int16", "int8|uint8 -> int8|uint8"),
        ("TRANSPOSE_CONV", "int32 int8 float32 float32? -> float32", ""),
    )
}
#: Types that no operator had.
_NOWHERE = frozenset(
    (TensorType.BFLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2, TensorType.INT2, TensorType.UINT4)
)


def known(row: Kernel) -> Kernel | None:
    """The row without the types that came later: anywhere, or in the operands that have the output's types."""
    data = _data(row.signature)
    later = _NOWHERE.union(type_ for type_, ops in _LATER.items() if row.op in ops)
    left = row.signature.narrowed(lambda slot: slot.without(later if slot.types == data else _NOWHERE))
    if left is None:
        return None
    signature = _FORMS.get((row.op, left), left)
    return None if signature is None else row.taking(signature)


def _data(signature: Signature) -> tuple[TensorType, ...] | None:
    """The types of what a row computes on: those of its result or, where that is bool, of its first input."""
    if not signature.outputs:
        return ()
    result = signature.outputs[-1]
    return signature.inputs[0].types if result.is_only(TensorType.BOOL) else result.types


def registered_for_reference(base: KernelTable) -> KernelTable:
    """What BUILTIN_REF has of a table."""
    return registered(base, REFERENCE, known)


def registered_for_optimized(base: KernelTable) -> KernelTable:
    """What BUILTIN_WITHOUT_DEFAULT_DELEGATES has of a table."""
    return registered(base, OPTIMIZED, known)
