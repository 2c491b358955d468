"""RESIZE_BILINEAR of r1.15 on 8 bits: float32, cut off towards zero instead of rounded.

Operands and options are those of the reference kernel that shares the name; there are no half-pixel centres yet.
uint8 of the optimized resolver multiplies the weights first and goes row by row.
Source: TensorFlow r1.15 lite/kernels/resize_bilinear.cc; reference_ops.h ResizeBilinear; optimized_ops.h
ResizeBilinearGenericSmallChannel.
"""

from __future__ import annotations

from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.resize_bilinear.optimized import prepare_truncated
from tflq.engine.kernels.resize_bilinear.reference import eval_float, truncate
from tflq.engine.kernels.validity import tf1
from tflq.engine.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare 8-bit input for the float evaluation."""
    data = truncate(node)
    return Prepared((data.shape,), data, eval_float)


KERNELS = (
    *valid(
        tf1(),
        *(
            Kernel("RESIZE_BILINEAR", f"{t} int32 -> {t}", prepare, (1, 2), shape_operands=(1,))
            for t in ("uint8", "int8")
        ),
    ),
    *valid(
        tf1("opt"), Kernel("RESIZE_BILINEAR", "uint8 int32 -> uint8", prepare_truncated, (1, 2), shape_operands=(1,))
    ),
)
