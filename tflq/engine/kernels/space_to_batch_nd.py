"""SPACE_TO_BATCH_ND: pad, then deal the pixels of every block out to batches.

| operand  | shape                   | types                  | quantization                    |
|----------|-------------------------|------------------------|---------------------------------|
| x        | (N, H, W, C), (N, H, C) | every 8 to 64 bit type | per tensor; int16: zero point 0 |
| block    | (2) or (1)              | int32                  |                                 |
| paddings | (2, 2) or (1, 2)        | int32                  |                                 |
| y        | batches times blocks    | as x                   | 8, 16 bits: as x                |

Padding is the output's zero point, 0 for wider types: the source writes it byte by byte. The output's batch order is
row in the block, column in the block, batch of the input.
Source: LiteRT 2.3, space_to_batch_nd.cc; reference/space_to_batch_nd.h SpaceToBatchND.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.families.movement import contiguous
from tflq.engine.kernels.families.space_batch import Blocks, blocks_of, check_quantization
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, Shape, valid
from tflq.engine.kernels.validity import micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """The padded image, where the input lies in it, and the blocks that it is cut into."""

    padded: tuple[int, int, int, int]
    inside: tuple[slice, ...]  # of the padded image
    kept: tuple[slice, ...]  # of the input: all of it unless a padding is negative
    blocks: Blocks
    fill: Array  # one element
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a padded image that is a whole number of blocks."""
    x, y = node.input(0), node.outputs[0]
    check_quantization(node)
    blocks = blocks_of(node)
    n, h, w, c = blocks.image
    sizes, inside, kept = [], [slice(None)], [slice(None)]
    for size, block, (before, after) in zip((h, w), blocks.block, blocks.margins, strict=True):
        total = size + before + after
        fits = total >= 0 and total % block == 0
        node.check(fits, "padded size", node.input(2), expected=f"a multiple of {block}", got=total)
        count = max(0, min(size - max(-before, 0), total - max(before, 0)))
        sizes.append(total)
        inside.append(slice(max(before, 0), max(before, 0) + count))
        kept.append(slice(max(-before, 0), max(-before, 0) + count))
    (bh, bw), (height, width) = blocks.block, sizes
    full = (n * bh * bw, height // bh, width // bw, c)
    shape = blocks.seen(full, len(x.shape))
    data = OpData((n, height, width, c), tuple(inside), tuple(kept), blocks, filling(y), shape)
    return Prepared((shape,), data, eval_space_to_batch)


def filling(y: Operand) -> Array:
    """Return one element all of whose bytes are the zero point's lowest byte; 0 for types wider than 16 bits."""
    dtype = CARRIER[y.type]
    byte = y.zero_point & 0xFF if dtype.itemsize <= 2 else 0
    return np.full(dtype.itemsize, byte, np.uint8).view(dtype)


def eval_space_to_batch(data: OpData, x: Array, block: Array, paddings: Array) -> Array:
    """Source: reference_ops::SpaceToBatchND."""
    n, height, width, c = data.padded
    bh, bw = data.blocks.block
    image = np.full(data.padded, data.fill, x.dtype)
    image[data.inside] = x.reshape(data.blocks.image)[data.kept]
    dealt = image.reshape(n, height // bh, bh, width // bw, bw, c).transpose(2, 4, 0, 1, 3, 5)
    return contiguous(dealt).reshape(data.shape)


def prepare_unpadded(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse borders: Init of tflite-micro's kernel leaves the code that fills them unset."""
    if any(margin > 0 for margins in blocks_of(node).margins for margin in margins):
        raise UndefinedResultError(
            node.op, "paddings are filled with SpaceToBatchParams.output_offset, which is never set"
        )
    return prepare(node, arithmetic)


_KERNEL = Kernel("SPACE_TO_BATCH_ND", f"{SIZED} int32 int32 -> {SIZED}", prepare, (1, 4), shape_operands=(1, 2))
KERNELS = (_KERNEL, *valid(micro(), replace(_KERNEL, prepare=prepare_unpadded)))
