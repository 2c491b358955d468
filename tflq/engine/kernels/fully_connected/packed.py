"""FULLY_CONNECTED of floats by four-bit weights under the optimized resolver, on x86-64.

| operand | shape            | types   | quantization                                             |
|---------|------------------|---------|----------------------------------------------------------|
| x       | any, >= B * K    | float32 | none                                                     |
| w       | O, K             | int4    | per tensor, along O, or scales (O, K / block) in float16 |
| bias    | O, optional      | float32 |                                                          |
| y       | B, O, or x's, O  | float32 | none                                                     |

Options: keep_num_dims, fused activation (all of the schema's).
Constant weights of at least 4 units and an even K of at least 32 have kernels of their own; all others go as
tflq/engine/kernels/fully_connected/hybrid.py. Per tensor and along O, weights are packed, and rows are quantized
symmetrically, regardless of the option. With scales of blocks, rows are quantized asymmetrically, and the activation
function is not applied.
Source: LiteRT 2.3, fully_connected.cc PrepareImpl, EvalHybridDense4Bit, EvalBlockwise4Bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.kernels.families.contraction import require_symmetric
from tflq.engine.kernels.families.hybrid import block_scales, is_blockwise, unit_scales
from tflq.engine.kernels.families.recurrent.activation import activate, function_of
from tflq.engine.kernels.fully_connected import hybrid
from tflq.engine.kernels.fully_connected.shapes import output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.dynamic_range import quantize_rows
from tflq.engine.numerics.packed_int4 import DEPTH, PackedMatrix, blocks
from tflq.typing import Array

#: Units that the packed kernel computes at a time.
WIDTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants of packed weights."""

    shape: Shape  # of the output
    length: int  # K
    matrix: PackedMatrix
    activation: int


@dataclass(frozen=True, slots=True, eq=False)
class BlockData:
    """Constants of weights with scales of blocks."""

    shape: Shape  # of the output
    weights: Array  # (O, K)
    scales: Array  # (O, blocks)


def is_packed(node: Node, shape: Shape) -> bool:
    """Return whether the operator has a kernel of its own."""
    w, rows = node.input(1), prod(shape[:-1])
    length = prod(node.input(0).shape) // rows if rows else 0
    return w.is_constant and length % 2 == 0 and length >= DEPTH and w.shape[0] >= WIDTH


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Choose by shape and quantization. Refuse packed weights without scales, as the runtime does."""
    shape, w = output_shape(node), node.input(1)
    if w.shape[1] == 0 or not is_packed(node, shape):
        return hybrid.prepare(node, arithmetic)
    require_symmetric(node, w)
    assert w.value is not None  # is_packed saw to it
    if is_blockwise(w):
        scales, _ = block_scales(node, w, w.shape[1])
        return Prepared((shape,), BlockData(shape, w.value, scales), eval_blocks)
    node.check(w.is_quantized, "scale", w, expected="one, or one a unit", got="none")
    scale = np.broadcast_to(unit_scales(node, w, w.shape[0]), w.shape[0])
    data = OpData(shape, w.shape[1], PackedMatrix.of(w.value, scale, arithmetic.int4_offset), function_of(node))
    return Prepared((shape,), data, eval_packed)


def _rows(x: Array, shape: Shape, length: int) -> Array:
    """Return the rows that the output has; elements beyond the last whole row are not read."""
    count = prod(shape[:-1])
    return np.ascontiguousarray(x).reshape(-1)[: count * length].reshape(count, length)


def eval_packed(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalHybridDense4Bit. Rounding: as PackedMatrix."""
    out = data.matrix(_rows(x, data.shape, data.length), None if bias is None else bias.reshape(-1))
    return activate(data.activation, out).reshape(data.shape)


def eval_blocks(data: BlockData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Source: EvalBlockwise4Bit. Rounding: as blocks, then times the row's scale, then plus the bias."""
    rows = quantize_rows(_rows(x, data.shape, data.weights.shape[1]), True)
    out = blocks(rows.codes, rows.zero_point, data.weights, data.scales) * rows.scale[:, None]
    return (out if bias is None else out + bias.reshape(-1)).reshape(data.shape)


KERNELS = valid(
    opt("litert-1.4", cpu="x86-64"), Kernel("FULLY_CONNECTED", "float32 int4 float32? -> float32", prepare, (1, 14))
)
