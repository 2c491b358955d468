"""DEPTH_TO_SPACE: channels become blocks of pixels.

| operand | shape                  | types                              | quantization |
|---------|------------------------|------------------------------------|--------------|
| x       | (N, H, W, C)           | float32, uint8, int8, int32, int64 | passed by    |
| y       | (N, H*b, W*b, C/(b*b)) | as x                               | passed by    |

Options: block_size b; b * b must divide C.
Source: LiteRT 2.3, depth_to_space.cc Prepare; reference/depth_to_space.h DepthToSpace.
"""

from __future__ import annotations

from tflq.engine.kernels.families.movement import contiguous
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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


_X = "float32|uint8|int8|int32|int64"

KERNELS = (Kernel("DEPTH_TO_SPACE", f"{_X} -> {_X}", prepare, (1, 2)),)
