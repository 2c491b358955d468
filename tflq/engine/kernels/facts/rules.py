"""The requirements of the TFLite 8-bit quantization specification and of LiteRT's kernels on operands, by operator.

Sources: TFLite 8-bit quantization specification; LiteRT 2.3 tflite/kernels/*.cc, their Prepare functions. The kernel
table of profile `litert-ref` defines which element types a kernel takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.fact import FREE, Rule
from tflq.model.ir import TensorType

#: Operator -> rule, for all that have a kernel which reads codes as scaled numbers.
RULES: Mapping[str, Rule] = MappingProxyType(
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
