"""Float activations against narrow weights: the bodies that hybrid operators share.

The input is quantized when the operator runs, one scale for each row or image; sums of products are exact integers,
turned to float32 and scaled.
Source: LiteRT 2.3, EvalHybrid and EvalHybridPerChannel of the operators; tensor_utils AsymmetricQuantizeFloats,
SymmetricQuantizeFloats.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.kernel import SCALES_ELSEWHERE, Node, Operand
from tflq.engine.kernels.operands import require_rank
from tflq.engine.numerics.dynamic_range import Rows, quantize_rows
from tflq.errors import UndefinedResultError
from tflq.model.ir import TensorType
from tflq.typing import Array


def read_as_int8(w: Array) -> Array:
    """Return weights as every hybrid kernel reads them: as int8, regardless of their type."""
    return np.ascontiguousarray(w).view(np.int8)


def is_blockwise(w: Operand) -> bool:
    """Return whether the scales are in tensors of their own."""
    details = None if w.quantization is None else w.quantization.details
    return details is not None and details.table in SCALES_ELSEWHERE


def block_scales(node: Node, table: Operand, length: int) -> tuple[Array, int]:
    """Return the scales as (rows, blocks), float32, and the elements of a block."""
    details = table.quantization.details if table.quantization is not None else None
    assert details is not None  # is_blockwise saw to it
    block, scales = int(details["block_size"]), table.block_scales
    blockwise = details.table == "BlockwiseQuantization" and table.type in (TensorType.INT4, TensorType.INT2)
    node.check(blockwise, "quantization", table, expected="blocks of 2 or 4 bits", got=f"{details.table}, {table.type}")
    require_rank(node, table, 2)
    node.check(block > 0 and length % block == 0, "block size", table, expected=f"a divisor of {length}", got=block)
    blocks = length // block
    fits = scales is not None and scales.dtype == np.float16 and scales.size >= table.shape[0] * blocks
    if scales is None or not fits:
        node.refuse("scales of blocks", table, expected=f"{table.shape[0] * blocks} constants of float16")
    return scales[: table.shape[0] * blocks].astype(np.float32).reshape(table.shape[0], blocks), block


def unit_scales(node: Node, w: Operand, units: int) -> np.float32 | Array:
    """Return one scale for all units, 0 if there is none; or one a unit if there are several."""
    q = w.quantization
    return w.scale if q is None or len(q.scale) <= 1 else channel_scales(node, w, units)


def channel_scales(node: Node, w: Operand, channels: int) -> Array:
    """Return one scale a channel, float32. Refuse fewer scales than the source reads."""
    q = w.quantization
    assert q is not None  # callers have seen scales
    dimension, count = q.quantized_dimension, len(q.scale)
    size = w.shape[dimension] if 0 <= dimension < len(w.shape) else None
    node.check(size == count, "number of weight scales", w, expected=size, got=count)
    if count < channels:
        raise UndefinedResultError(node.op, f"{count} weight scales for {channels} output channels")
    return q.scale[:channels].astype(np.float32)


def quantize_images(x: Array, asymmetric: bool) -> Rows:
    """Quantize every image of `x` (N, H, W, C) as one row. Source: the loop over batches in EvalHybridPerChannel."""
    return quantize_rows(np.ascontiguousarray(x, np.float32).reshape(x.shape[0], math.prod(x.shape[1:])), asymmetric)


def centre_images(x: Array) -> tuple[Array, Array]:
    """Quantize images asymmetrically; return code minus zero point (int16, the shape of `x`) and their scales."""
    rows = quantize_images(x, asymmetric=True)
    centred = rows.codes.astype(np.int16) - rows.zero_point.astype(np.int16)[:, None]
    return centred.reshape(x.shape), rows.scale


#: The promise of hybrid operators up to 2.14, which quantized floats and summed products in float64.
UNCLAIMED_2_14 = close("2.14 quantizes activations without the vector helpers of later releases")
