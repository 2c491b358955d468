"""Operators of CMSIS-NN built with CMSIS_NN_USE_SINGLE_ROUNDING: 32-bit accumulators are scaled once, half up.

TensorFlow Lite Micro's own kernels keep both roundings: every operator that the library does not have, and ADD and MUL
of operands that are broadcast. Multipliers are TensorFlow Lite Micro's in either case.
Source: CMSIS-NN 99f736a, arm_nn_requantize; tflite-micro (August 2026), kernels/cmsis_nn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.table import KernelTable
from tflq.engine.numerics.arithmetic import Arithmetic, round_once
from tflq.model.ir import TensorType

Prepare = Callable[[Node, Arithmetic], Prepared]


@cache
def once(prepare: Prepare) -> Prepare:
    """Return `prepare` with every rounding done once."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node, round_once(arithmetic))

    return prepared


@cache
def once_unless_broadcast(prepare: Prepare) -> Prepare:
    """Return `prepare` with every rounding done once if both operands have one shape, except for leading ones."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        same = _extent(node.input(0).shape) == _extent(node.input(1).shape)
        return prepare(node, round_once(arithmetic) if same else arithmetic)

    return prepared


def _extent(shape: Shape) -> Shape:
    """Return a shape without leading dimensions of 1."""
    leading = next((at for at, size in enumerate(shape) if size != 1), len(shape))
    return shape[leading:]


_INT8, _INT16 = (TensorType.INT8,), (TensorType.INT16,)

#: How each operator of the library is prepared, and the first types of its rows that the library computes.
_REPLACED: Mapping[str, tuple[Callable[[Prepare], Prepare], tuple[tuple[TensorType, ...], ...]]] = {
    "ADD": (once_unless_broadcast, (_INT8, _INT16)),
    "BATCH_MATMUL": (once, (_INT8,)),
    "CONV_2D": (once, (_INT8,)),
    "DEPTHWISE_CONV_2D": (once, (_INT8,)),
    "FULLY_CONNECTED": (once, (_INT8,)),
    "MUL": (once_unless_broadcast, (_INT8, _INT16)),
    "SOFTMAX": (once, (_INT16,)),
    "SVDF": (once, (_INT8,)),
    "TRANSPOSE_CONV": (once, ((TensorType.INT32, TensorType.INT8, TensorType.INT8),)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (once, (_INT8, _INT16)),
}


def round_by_the_library_once(table: KernelTable) -> KernelTable:
    """Return `table` with one rounding in the rows that the library computes."""
    return table.each(_round_once)


def _round_once(row: Kernel) -> Kernel:
    if row.op not in _REPLACED:
        return row
    wrap, starts = _REPLACED[row.op]
    ours = any(row.signature.starts_with(*types) for types in starts)
    return replace(row, prepare=wrap(row.prepare)) if ours else row
