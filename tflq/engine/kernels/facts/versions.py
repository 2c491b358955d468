"""The least version of an operator that takes operands of given types.

Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import Needs
from tflq.model.ir import Record, TensorType

#: The least version of a MUL whose product of input scales is not below the output's scale.
MUL_BY_ONE_OR_MORE = 3


def needs_of(op: str) -> Needs:
    """Return the versions that an operator needs; version 1 throughout if it has no row of facts."""
    return OPERATORS[op].needs if op in OPERATORS else Needs()


def need(op: str, types: Sequence[TensorType | None], *, per_channel: bool = False) -> int:
    """Return the version that an operator with inputs of those types needs, by types and number of scales."""
    data = next((t for t in types if t in (TensorType.INT8, TensorType.INT16, TensorType.UINT8)), None)
    needs = needs_of(op)
    if TensorType.FLOAT32 in types:
        if TensorType.INT4 in types:
            return needs.hybrid_int4
        return needs.hybrid[per_channel] if needs.hybrid and data is not None else 1
    if TensorType.INT4 in types:
        return needs.int4
    if data == TensorType.INT16:
        return needs.int16
    if data == TensorType.UINT8:
        return needs.int8 if needs.uint8_too else 1
    return needs.int8 if data is not None else 1


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
