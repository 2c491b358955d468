"""Weights as a step takes them: built once if the model holds them, at every run if it computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand
from tflq.engine.numerics.dynamic_range import ByteMatrix
from tflq.typing import Array

Inputs = Sequence[Array | None]
Weights = Array | ByteMatrix
T = TypeVar("T")


def bind(node: Node, positions: Sequence[int], build: Callable[[Inputs], T]) -> Callable[[Inputs], T]:
    """Return `build(inputs)`, called now if all operands at `positions` are constant."""
    operands = [node.optional(p) for p in positions]
    if any(o is not None and not o.is_constant for o in operands):
        return build
    constants = build([None if o is None else o.value for o in node.inputs])
    return lambda inputs: constants


def matrix(operand: Operand, value: Array) -> Weights:
    """Return weights (units, depth): float ones transposed, for loops over units, 8-bit ones with their scale."""
    if value.dtype == np.float32:
        return np.ascontiguousarray(value.T)
    return ByteMatrix.of(value, operand.scale)


def optional_matrix(node: Node, position: int, inputs: Inputs) -> Weights | None:
    """Return the matrix at `position`, None if the operand is absent."""
    operand = node.optional(position)
    value = inputs[position] if operand is not None else None
    return None if operand is None or value is None else matrix(operand, value)
