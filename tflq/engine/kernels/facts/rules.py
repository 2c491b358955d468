"""Rules of versions and quantization that facts follow.

The requirements of the TFLite 8-bit quantization specification and of LiteRT's kernels on operands, by operator.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/*.cc, their Prepare functions. The kernel
table of profile `litert-ref` defines which element types a kernel takes.

The least version of an operator that takes operands of given types.

Source: LiteRT 2.3 tflite/converter/tools/versioning/op_version.cc GetBuiltinOperatorVersion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import FREE, Needs, VersionRule
from tflq.model.ir import Record, TensorType

#: Operator -> rule, for all that have a kernel which reads codes as scaled numbers.
RULES: Mapping[str, VersionRule] = MappingProxyType(
    {op: fact.quantize for op, fact in OPERATORS.items() if fact.quantize is not None}
)


@dataclass(frozen=True, slots=True)
class Places:
    """Positions of an operator's data, weights and bias; the weights' dimension of output channels."""

    data: int
    weights: int
    bias: int
    axis: int


#: Operators with a bias, and weights that may have a scale for each channel.
WITH_CHANNELS: Mapping[str, Places] = MappingProxyType(
    {
        op: Places(weights.data, weights.weights, weights.bias, weights.axis)
        for op, rule in RULES.items()
        if (weights := rule.weights) is not None and weights.axis is not None and weights.bias is not None
    }
)
#: Operators that copy rows of a table -> its position. Where data stay float, constant tables are stored in 8 bits,
#: with a scale for each row.
TABLES: Mapping[str, int] = MappingProxyType(
    {op: fact.table for op, fact in OPERATORS.items() if fact.table is not None}
)
#: Operators that look at nothing but shapes: they read a tensor as it is made.
READS_SHAPES = frozenset(op for op, fact in OPERATORS.items() if fact.reads_shapes)
#: Operators that change a tensor's form, and do not compute.
CONVERSIONS = frozenset(op for op, fact in OPERATORS.items() if fact.converts)
#: Operators with an integer kernel that stay in float all the same, and why.
KEPT_FLOAT: Mapping[str, str] = MappingProxyType(
    {op: fact.kept_float for op, fact in OPERATORS.items() if fact.kept_float}
)
#: (operator, type of data) of kernels whose results are wrong, and how.
BROKEN: Mapping[tuple[str, TensorType], str] = MappingProxyType(
    {(op, TensorType[t.upper()]): how for op, fact in OPERATORS.items() for t, how in fact.broken.items()}
)
#: (operator, output type) -> scale and zero point that its kernel uses in place of the file's.
FIXED: Mapping[tuple[str, TensorType], tuple[float, int]] = MappingProxyType(
    {(op, TensorType[t.upper()]): value for op, fact in OPERATORS.items() for t, value in fact.output.items()}
)


def tied_inputs(op: str, count: int) -> tuple[int, ...]:
    """Return the positions of an operator's `count` inputs that share scale and zero point with its output."""
    tied = RULES.get(op, FREE).tied
    if tied is None:
        return ()
    return tied or tuple(range(count))


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
