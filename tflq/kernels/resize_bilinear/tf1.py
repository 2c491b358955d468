"""RESIZE_BILINEAR of r1.15 on 8 bits: float32, cut off towards zero instead of rounded.

Operands and options are those of the reference kernel that shares the name; there are no half-pixel centres yet.
Source: TensorFlow r1.15 lite/kernels/resize_bilinear.cc; reference_ops.h ResizeBilinear.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.resize_bilinear.reference import OpData, eval_float, float_taps, prepare_with
from tflq.kernels.validity import tf1
from tflq.numerics.arithmetic import Arithmetic


def op_data(node: Node) -> OpData:
    """Taps in float32, and nothing added before the cut."""
    return replace(prepare_with(node, float_taps), offset=np.float32(0))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare 8-bit input for the float evaluation."""
    data = op_data(node)
    return Prepared((data.shape,), data, eval_float)


KERNELS = valid(
    tf1(),
    *(Kernel("RESIZE_BILINEAR", f"{t} int32 -> {t}", prepare, (1, 2), shape_operands=(1,)) for t in ("uint8", "int8")),
)
