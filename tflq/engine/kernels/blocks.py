"""SPACE_TO_BATCH_ND, SPACE_TO_DEPTH and back: blocks of pixels change places.

SPACE_TO_BATCH_ND: pad, then deal the pixels of every block out to batches.

| operand  | shape                   | types                  | quantization                    |
|----------|-------------------------|------------------------|---------------------------------|
| x        | (N, H, W, C), (N, H, C) | every 8 to 64 bit type | per tensor; int16: zero point 0 |
| block    | (2) or (1)              | int32                  |                                 |
| paddings | (2, 2) or (1, 2)        | int32                  |                                 |
| y        | batches times blocks    | as x                   | 8, 16 bits: as x                |

Padding is the output's zero point, 0 for wider types: the source writes it byte by byte. The output's batch order is
row in the block, column in the block, batch of the input.
Source: LiteRT 2.3, space_to_batch_nd.cc; reference/space_to_batch_nd.h SpaceToBatchND.

BATCH_TO_SPACE_ND: put pixels dealt out to batches back into blocks, then crop.

| operand | shape                   | types                  | quantization                    |
|---------|-------------------------|------------------------|---------------------------------|
| x       | (N, H, W, C), (N, H, C) | every 8 to 64 bit type | per tensor; int16: zero point 0 |
| block   | (2) or (1)              | int32                  |                                 |
| crops   | (2, 2) or (1, 2)        | int32, not negative    |                                 |
| y       | N through the blocks    | as x                   | 8, 16 bits: as x                |

Source: LiteRT 2.3, batch_to_space_nd.cc; reference/batch_to_space_nd.h BatchToSpaceND.

SPACE_TO_DEPTH: blocks of pixels become channels.

| operand | shape                  | types                              | quantization |
|---------|------------------------|------------------------------------|--------------|
| x       | (N, H, W, C)           | float32, uint8, int8, int32, int64 | passed by    |
| y       | (N, H/b, W/b, C*b*b)   | as x                               | passed by    |

Options: block_size b, which must divide H and W.
Source: LiteRT 2.3, space_to_depth.cc Prepare; reference/space_to_depth.h SpaceToDepth.

DEPTH_TO_SPACE: channels become blocks of pixels.

| operand | shape                  | types                              | quantization |
|---------|------------------------|------------------------------------|--------------|
| x       | (N, H, W, C)           | float32, uint8, int8, int32, int64 | passed by    |
| y       | (N, H*b, W*b, C/(b*b)) | as x                               | passed by    |

Options: block_size b; b * b must divide C.
Source: LiteRT 2.3, depth_to_space.cc Prepare; reference/depth_to_space.h DepthToSpace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.checks import require_rank, require_same_type, require_size
from tflq.engine.kernels.families.movement import SIZED, BatchBlocks, blocks_of, check_quantization, contiguous
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
    blocks: BatchBlocks
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
_SPACE_TO_BATCH_ND = (_KERNEL, *valid(micro(), replace(_KERNEL, prepare=prepare_unpadded)))


@dataclass(frozen=True, slots=True)
class BatchToSpaceNdData:
    """The blocks, and what remains of the image behind the crops."""

    blocks: BatchBlocks
    batches: int
    rest: tuple[slice, ...]
    shape: Shape


def prepare_batch_to_space_nd(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require blocks that divide the batches, one dimension after the other."""
    x = node.input(0)
    check_quantization(node)
    blocks = blocks_of(node)
    n, h, w, c = blocks.image
    sizes = []
    for size, block, crop in zip((h, w), blocks.block, blocks.margins, strict=True):
        require_size(node, node.input(2), crop)
        node.check(n % block == 0, "batches", x, expected=f"a multiple of {block}", got=n)
        n //= block
        sizes.append(size * block - sum(crop))
    require_size(node, node.outputs[0], tuple(sizes))
    starts = [crop[0] for crop in blocks.margins]
    rest = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    shape = blocks.seen((n, sizes[0], sizes[1], c), len(x.shape))
    return Prepared((shape,), BatchToSpaceNdData(blocks, n, (slice(None), *rest), shape), eval_batch_to_space)


def eval_batch_to_space(data: BatchToSpaceNdData, x: Array, block: Array, crops: Array) -> Array:
    """Source: reference_ops::BatchToSpaceND."""
    _, h, w, c = data.blocks.image
    bh, bw = data.blocks.block
    image = x.reshape(bh, bw, data.batches, h, w, c).transpose(2, 3, 0, 4, 1, 5)
    return contiguous(image.reshape(data.batches, h * bh, w * bw, c)[data.rest]).reshape(data.shape)


_BATCH_TO_SPACE_ND = (
    Kernel(
        "BATCH_TO_SPACE_ND", f"{SIZED} int32 int32 -> {SIZED}", prepare_batch_to_space_nd, (1, 4), shape_operands=(1, 2)
    ),
)


def prepare_space_to_depth(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a block that divides the image."""
    x, block = node.input(0), int(node.options["block_size"])
    require_same_type(node, x, node.outputs[0])
    require_rank(node, x, 4)
    node.check(block > 0, "block_size", expected="more than 0", got=block)
    n, h, w, c = x.shape
    node.check(h % block == 0 and w % block == 0, "image", x, expected=f"multiples of {block}", got=[h, w])
    shape = (n, h // block, w // block, c * block * block)
    return Prepared((shape,), block, eval_space_to_depth)


def eval_space_to_depth(block: int, x: Array) -> Array:
    """Move channels in the output's order: row in the block, column in the block, channel of the input."""
    n, h, w, c = x.shape
    rows, columns = h // block, w // block
    blocks = x.reshape(n, rows, block, columns, block, c).transpose(0, 1, 3, 2, 4, 5)
    return contiguous(blocks).reshape(n, rows, columns, block * block * c)


_X = "float32|uint8|int8|int32|int64"

_SPACE_TO_DEPTH = (Kernel("SPACE_TO_DEPTH", f"{_X} -> {_X}", prepare_space_to_depth, (1, 2)),)


def prepare_depth_to_space(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require a block that divides the channels."""
    x, block = node.input(0), int(node.options["block_size"])
    require_same_type(node, x, node.outputs[0])
    require_rank(node, x, 4)
    node.check(block > 0, "block_size", expected="more than 0", got=block)
    n, h, w, c = x.shape
    node.check(c % (block * block) == 0, "channels", x, expected=f"a multiple of {block * block}", got=c)
    shape = (n, h * block, w * block, c // (block * block))
    return Prepared((shape,), block, eval_depth_to_space)


def eval_depth_to_space(block: int, x: Array) -> Array:
    """Move channels in the input's order: row in the block, column in the block, channel of the output."""
    n, h, w, c = x.shape
    depth = c // (block * block)
    pixels = x.reshape(n, h, w, block, block, depth).transpose(0, 1, 3, 2, 4, 5)
    return contiguous(pixels).reshape(n, h * block, w * block, depth)


_DEPTH_TO_SPACE = (Kernel("DEPTH_TO_SPACE", f"{_X} -> {_X}", prepare_depth_to_space, (1, 2)),)

#: The rows of all operators above.
KERNELS = (*_SPACE_TO_BATCH_ND, *_BATCH_TO_SPACE_ND, *_SPACE_TO_DEPTH, *_DEPTH_TO_SPACE)
