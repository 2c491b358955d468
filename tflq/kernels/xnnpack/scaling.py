"""Results of 8-bit matrix products and convolutions, scaled as XNNPACK scales them.

Sums are the reference kernels': they are exact integers. The multiplier is float32: scale(x) * scale(w), then
/ scale(y), each rounded.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.ir import TensorType
from tflq.kernels.kernel import Operand, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.float32_stages import FloatRoundingEven
from tflq.numerics.stages import StageOf


def rescaled(made: Prepared, stage: StageOf, x: Operand, w: Operand, y: Operand, channels: int) -> Prepared:
    """A prepared contraction (its data have an `output`) with another scaling."""
    assert w.quantization is not None  # the rules of delegation saw to it
    real = np.broadcast_to(x.scale * w.quantization.scale / y.scale, channels)
    output = made.data.output
    pipeline = replace(output.pipeline, stage=stage(real))
    return replace(made, data=replace(made.data, output=replace(output, pipeline=pipeline)))


def gemm(arithmetic: Arithmetic, x: Operand) -> StageOf:
    """The scaling of matrix products: uint8 has its own on some machines."""
    return arithmetic.xnnpack_uint8_gemm if x.type == TensorType.UINT8 else FloatRoundingEven.of


def depthwise(arithmetic: Arithmetic, x: Operand) -> StageOf:
    """The scaling of depthwise convolutions."""
    return arithmetic.xnnpack_product if x.type == TensorType.UINT8 else FloatRoundingEven.of
