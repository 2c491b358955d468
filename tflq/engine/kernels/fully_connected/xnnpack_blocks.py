"""FULLY_CONNECTED of floats by XNNPACK, with weights of four bits and a scale for every block of inputs.

| operand | type, shape | quantization |
|---|---|---|
| x | float32 (..., K) | rows asymmetrically when it runs |
| weights | int4 (O, K), constant | scales (O, K / block) in a float16 tensor, read as bfloat16 |
| bias | float32 (O), constant, or none | |
| y | float32 (..., O) | |

Options: as kernels/fully_connected/hybrid.py. Weights of 2 or 8 bits with blocks of such a size are taken and then
refused, and so are scales that are not positive.
Source: LiteRT 2.3 xnnpack_delegate.cc GetXNNPackDatatype, CheckFp16Scale; XNNPACK's qd8-f32-qb4w gemm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.activation import clamp_in_place, float_range
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.fully_connected.shapes import output_shape
from tflq.engine.kernels.kernel import Node, Operand, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.block_products import BlockProduct, Blocks, to_bfloat16
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.dynamic_range_float32 import quantize_rows_float32
from tflq.model.ir import TensorType
from tflq.typing import Array

#: Blocks have a multiple of this number of inputs.
_LEAST = 32


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    shape: Shape  # of the output
    weights: Blocks
    product: BlockProduct
    clamp: NumberClamp


def takes(w: Operand) -> bool:
    """Return whether the delegate takes weights with scales of blocks, regardless of whether XNNPACK can run them."""
    details = None if w.quantization is None else w.quantization.details
    return details is not None and details.table == "BlockwiseQuantization" and int(details["block_size"]) % _LEAST == 0


def check(node: Node, w: Operand, block: int) -> None:
    """Refuse weights for which LiteRT does not prepare the model: it has taken them by then.

    Source: xnnpack_delegate.cc CheckTensorFilterType, GetXNNPackDatatype.
    """
    scales = w.block_scales
    node.check(w.type == TensorType.INT4, "type of weights with scales of blocks", w, expected="int4", got=w.type.label)
    if scales is None or scales.dtype != np.float16:
        node.refuse("scales of blocks that are not float16", w)
    positive = bool(scales.size) and bool(np.all(np.isfinite(scales) & (scales > 0)))
    node.check(positive, "scales of blocks that are not positive and finite", w)
    count = int(np.prod(w.shape)) // scales.size
    node.check(block == count, "block size", w, expected=count, got=block)


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse an unknown order of sums, and what XNNPACK refuses, such as blocks that do not divide K."""
    shape, w = output_shape(node), node.input(1)
    assert w.quantization is not None  # takes saw to both
    assert w.quantization.details is not None
    block, (units, length) = int(w.quantization.details["block_size"]), w.shape
    check(node, w, block)
    assert w.block_scales is not None
    assert w.value is not None
    if arithmetic.xnnpack_blocks is None:
        node.refuse("the order in which XNNPACK adds sums of blocks is not known here", w)
    node.check(length % block == 0, "block size", w, expected=f"a divisor of {length}", got=block)
    scales = to_bfloat16(w.block_scales.reshape(units, length // block).astype(np.float32))
    weights = Blocks(w.value, scales, block)
    return Prepared((shape,), OpData(shape, weights, arithmetic.xnnpack_blocks, float_range(node)), evaluate)


def evaluate(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Rounding: as `product`."""
    units, length = data.weights.codes.shape
    rows = quantize_rows_float32(np.ascontiguousarray(x).reshape(-1, length))
    out = data.product(rows, data.weights, bias_of(bias, units, np.float32))
    return clamp_in_place(out, *data.clamp).reshape(data.shape)
