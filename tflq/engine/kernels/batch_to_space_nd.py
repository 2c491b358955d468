"""BATCH_TO_SPACE_ND: put pixels dealt out to batches back into blocks, then crop.

| operand | shape                   | types                  | quantization                    |
|---------|-------------------------|------------------------|---------------------------------|
| x       | (N, H, W, C), (N, H, C) | every 8 to 64 bit type | per tensor; int16: zero point 0 |
| block   | (2) or (1)              | int32                  |                                 |
| crops   | (2, 2) or (1, 2)        | int32, not negative    |                                 |
| y       | N through the blocks    | as x                   | 8, 16 bits: as x                |

Source: LiteRT 2.3, batch_to_space_nd.cc; reference/batch_to_space_nd.h BatchToSpaceND.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.engine.kernels.families.element_types import SIZED
from tflq.engine.kernels.families.movement import contiguous
from tflq.engine.kernels.families.space_batch import Blocks, blocks_of, check_quantization
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.kernels.operands import require_size
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class OpData:
    """The blocks, and what remains of the image behind the crops."""

    blocks: Blocks
    batches: int
    rest: tuple[slice, ...]
    shape: Shape


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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
    return Prepared((shape,), OpData(blocks, n, (slice(None), *rest), shape), eval_batch_to_space)


def eval_batch_to_space(data: OpData, x: Array, block: Array, crops: Array) -> Array:
    """Source: reference_ops::BatchToSpaceND."""
    _, h, w, c = data.blocks.image
    bh, bw = data.blocks.block
    image = x.reshape(bh, bw, data.batches, h, w, c).transpose(2, 3, 0, 4, 1, 5)
    return contiguous(image.reshape(data.batches, h * bh, w * bw, c)[data.rest]).reshape(data.shape)


KERNELS = (Kernel("BATCH_TO_SPACE_ND", f"{SIZED} int32 int32 -> {SIZED}", prepare, (1, 4), shape_operands=(1, 2)),)
