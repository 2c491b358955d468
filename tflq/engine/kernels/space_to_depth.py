"""SPACE_TO_DEPTH: blocks of pixels become channels.

| operand | shape                  | types                              | quantization |
|---------|------------------------|------------------------------------|--------------|
| x       | (N, H, W, C)           | float32, uint8, int8, int32, int64 | passed by    |
| y       | (N, H/b, W/b, C*b*b)   | as x                               | passed by    |

Options: block_size b, which must divide H and W.
Source: LiteRT 2.3, space_to_depth.cc Prepare; reference/space_to_depth.h SpaceToDepth.
"""

from __future__ import annotations

from tflq.engine.kernels.families.movement import contiguous
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
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

KERNELS = (Kernel("SPACE_TO_DEPTH", f"{_X} -> {_X}", prepare, (1, 2)),)
