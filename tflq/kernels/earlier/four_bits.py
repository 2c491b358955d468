"""Operators whose 4-bit weights releases up to 2.14 read as bytes without unpacking them, beyond the end of the data.

Source: TensorFlow 2.14 lite/kernels/conv.cc, fully_connected.cc: only int8 activations unpack their weights.
"""

from __future__ import annotations

from tflq.errors import UndefinedResultError
from tflq.kernels.kernel import Kernel, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse the operator: its result depends on memory beyond the weights."""
    raise UndefinedResultError(node.op, "4-bit weights are read packed, as bytes")


KERNELS = (
    Kernel("CONV_2D", "int16 int4 int32|int64 -> int16", prepare),
    Kernel("CONV_2D", "float32 int4 float32 -> float32", prepare),
    Kernel("FULLY_CONNECTED", "int16 int4 int32|int64? -> int16", prepare),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", prepare),
)
