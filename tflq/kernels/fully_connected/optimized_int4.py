"""FULLY_CONNECTED with narrower weights: of 16-bit activations unpacked first; of floats a kernel of its own, which is
not modelled.

Source: LiteRT 2.3 fully_connected.cc EvalHybridDense4Bit; optimized/fully_connected_4bit.h.
"""

from __future__ import annotations

from tflq.kernels.fully_connected.optimized_int16 import prepare_int16
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refused."""
    node.refuse("float activations with 4-bit weights are not modelled under the optimized resolver")


KERNELS = valid(
    opt("litert-1.0"),
    Kernel("FULLY_CONNECTED", "int16 int4|int2 int32|int64? -> int16", prepare_int16, (1, 14)),
    Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", prepare, (1, 14)),
)
