"""SUM of 8-bit codes by XNNPACK: as MEAN, without the division.

Operands, options and refusals: tflq/kernels/mean_sum/sum.py. Every type is read as what it is.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitReduceNode; XNNPACK's qs8 and qu8 reductions.
"""

from __future__ import annotations

from tflq.kernels.delegation import delegate
from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.families.xnnpack_reductions import takes
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum.xnnpack_mean import prepare_scaled
from tflq.kernels.validity import xnnpack
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The ratio of scales is a float32 quotient."""
    return prepare_scaled(node, reduced_axes(node), node.input(0).scale / node.outputs[0].scale)


KERNELS = valid(
    xnnpack("litert-2.3"),
    *(delegate(Kernel("SUM", f"{t} int32 -> {t}", prepare, (1, 2), AXES), takes) for t in ("uint8", "int8")),
)
