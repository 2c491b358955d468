"""TRANSPOSE_CONV int8 in 2.3: as in 2.5, but one weight scale gives only the first output channel its multiplier; the
others read what memory holds. Refused.

Source: TensorFlow 2.3 lite/kernels/transpose_conv.cc Prepare; kernel_util.cc PopulateConvolutionQuantizationParams.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.errors import UndefinedResultError
from tflq.ir import TensorType
from tflq.kernels.kernel import Node, Prepared, valid
from tflq.kernels.transpose_conv.optimized_2_5 import KERNELS as LATER
from tflq.kernels.validity import opt
from tflq.numerics.arithmetic import Arithmetic

(_INT8,) = (row for row in LATER if row.signature.makes(TensorType.INT8))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse several channels that share a scale."""
    weights = node.input(1)
    if weights.quantization is not None and len(weights.quantization.scale) == 1 and weights.shape[0] > 1:
        raise UndefinedResultError(node.op, "one weight scale for several channels: only the first gets a multiplier")
    return _INT8.prepare(node, arithmetic)


KERNELS = valid(opt(until="tf-2.3", vectors=True), replace(_INT8, prepare=prepare))
