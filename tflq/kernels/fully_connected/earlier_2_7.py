"""FULLY_CONNECTED of 16-bit activations up to 2.7: outputs of more than two dimensions are not written. Refused.

Otherwise as fully_connected_2_9.py has it.
Source: TensorFlow 2.7 reference/integer_ops/fully_connected.h FullyConnected (int16).
"""

from __future__ import annotations

from tflq.errors import UndefinedResultError
from tflq.kernels.fully_connected.earlier import prepare_int16
from tflq.kernels.fully_connected.earlier_2_9 import one_scale
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse outputs of more than two dimensions: the loops take the first two for rows and units."""
    prepared = one_scale(prepare_int16)(node, arithmetic)
    shape = prepared.shapes[0]
    if shape is not None and len(shape) > 2:
        raise UndefinedResultError(node.op, "16-bit outputs of more than two dimensions are not written")
    return prepared


KERNELS = valid(
    tflite(until="tflite-2.7"), Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", prepare, (1, 9))
)
