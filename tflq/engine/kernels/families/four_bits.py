"""Operators whose 4-bit weights releases up to 2.14 read as bytes without unpacking them, beyond the end of the data.

Source: TensorFlow 2.14 lite/kernels/conv.cc, fully_connected.cc: only int8 activations unpack their weights.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError


def refuse_packed(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse the operator: its result depends on memory beyond the weights."""
    raise UndefinedResultError(node.op, "4-bit weights are read packed, as bytes")
