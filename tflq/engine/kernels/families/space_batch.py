"""Blocks of pixels that trade places with the batch dimension: what SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND share."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.engine.kernels.kernel import Node, Shape
from tflq.engine.kernels.operands import (
    integers,
    require_rank,
    require_same_quantization,
    require_same_type,
    require_zero_point_zero,
)
from tflq.model.ir import TensorType


@dataclass(frozen=True, slots=True)
class Blocks:
    """The input as (N, H, W, C), with W = 1 if there is none; block sizes and margins of H and W."""

    image: tuple[int, int, int, int]
    block: tuple[int, int]
    margins: tuple[tuple[int, int], tuple[int, int]]

    @staticmethod
    def seen(full: tuple[int, int, int, int], rank: int) -> Shape:
        """Return a four-dimensional shape as the tensor has it: three dimensions lack the width."""
        n, h, w, c = full
        return (n, h, w, c) if rank == 4 else (n, h, c)


def blocks_of(node: Node) -> Blocks:
    """Read blocks from input 1, margins (paddings or crops) from input 2."""
    x, block, margins = node.input(0), node.input(1), node.input(2)
    require_rank(node, x, 3, 4)
    spatial = len(x.shape) - 2
    node.check(block.shape == (spatial,), "shape of the block", block, expected=[spatial], got=list(block.shape))
    expected = (spatial, 2)
    node.check(margins.shape == expected, "shape", margins, expected=list(expected), got=list(margins.shape))
    sizes, amounts = integers(node, 1), integers(node, 2)
    node.check(min(sizes) > 0, "block", block, expected="more than 0", got=list(sizes))
    pairs = (amounts[0], amounts[1]), (amounts[2], amounts[3]) if spatial == 2 else (0, 0)
    n, h, c = x.shape[0], x.shape[1], x.shape[-1]
    return Blocks((n, h, x.shape[2] if spatial == 2 else 1, c), (sizes[0], sizes[1] if spatial == 2 else 1), pairs)


def check_quantization(node: Node) -> None:
    """Require the same scale and zero point for 8- and 16-bit integers; 16-bit ones have zero point 0."""
    x, y = node.input(0), node.outputs[0]
    require_same_type(node, x, y)
    if x.type in (TensorType.UINT8, TensorType.INT8, TensorType.INT16):
        require_same_quantization(node, x, y)
    if x.type == TensorType.INT16:
        require_zero_point_zero(node, x, y)
