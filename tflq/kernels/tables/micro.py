"""What TensorFlow Lite Micro takes: the operators that its Python package registers, without uint8 and hybrid forms.

Source: tflite-micro (October 2026), python_ops_resolver.cc; the type switches of its kernels.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.kernel import Kernel
from tflq.kernels.signature import Signature

_OPERATORS = (
    "ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS "
    "BROADCAST_TO CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM DELAY DEPTH_TO_SPACE DEPTHWISE_CONV_2D "
    "DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD "
    "FULLY_CONNECTED GATHER GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS "
    "LESS_EQUAL LOG LOG_SOFTMAX LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAX_POOL_2D MAXIMUM MEAN MINIMUM "
    "MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU "
    "RELU6 RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX "
    "SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF "
    "TANH TFLite_Detection_PostProcess TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE "
    "ZEROS_LIKE"
)
#: Operators that take uint8: they move bytes, or convert them.
_TAKES_UINT8 = (
    "ASSIGN_VARIABLE BROADCAST_TO CALL_ONCE DEQUANTIZE IF MUL READ_VARIABLE RESHAPE REVERSE_V2 SHAPE SQUEEZE "
    "VAR_HANDLE WHILE"
)
#: Operators that refuse float activations with integer weights.
_NO_HYBRID = "BATCH_MATMUL CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED SVDF TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM"

#: Types of the first operand that operators refuse when they run, beside uint8.
_WHOLE = (TensorType.INT32, TensorType.INT64)
_NOT_READ = {
    "MEAN": _WHOLE,
    "MUL": (TensorType.UINT8,),
    "REDUCE_MAX": (TensorType.INT16, *_WHOLE),
    "REDUCE_MIN": (TensorType.INT16, *_WHOLE),
    "RESIZE_BILINEAR": (TensorType.INT16,),
    "SUM": _WHOLE,
}

OPERATORS, TAKES_UINT8, NO_HYBRID = (frozenset(names.split()) for names in (_OPERATORS, _TAKES_UINT8, _NO_HYBRID))


_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def accepted(row: Kernel) -> Kernel | None:
    """Return the row without uint8 where that is refused; None if nothing of it is left."""
    if row.op == "QUANTIZE":  # of other types, all of them among its own
        return None
    signature = row.signature
    if row.op in NO_HYBRID and signature.is_float and signature.reads(*_CODES):
        return None
    first = signature.inputs[0].without(_NOT_READ.get(row.op, ())) if signature.inputs else None
    if signature.inputs and first is None:
        return None
    left: Signature | None = signature if first is None else replace(signature, inputs=(first, *signature.inputs[1:]))
    if left is not None and row.op not in TAKES_UINT8:
        left = left.without(TensorType.UINT8)
    return None if left is None else row.taking(left)
