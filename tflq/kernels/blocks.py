"""How vector code and the scalar loop after it share the elements: each rule stated once.

A vector loop takes whole blocks; what is left over is done one by one, often with another rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tflq.kernels.kernel import Array, Node, Prepared
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.stages import BlockTail, OutputPipeline, OutputStage, StageOf

Prepare = Callable[[Node, Arithmetic], Prepared]


def in_whole_blocks(size: int, block: int) -> int:
    """How many of `size` elements fill whole blocks."""
    return size - size % block


def channel_blocks(arithmetic: Arithmetic, block: int) -> StageOf:
    """Whole blocks of channels by vector code, the channels left over one by one."""
    return BlockTail.of(arithmetic.requantize_simd, arithmetic.requantize, block)


def requantizing(prepare: Prepare, choose: Callable[[Arithmetic], StageOf]) -> Prepare:
    """`prepare` with another scaling of int32 accumulators."""

    def prepare_otherwise(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node, replace(arithmetic, requantize=choose(arithmetic)))

    return prepare_otherwise


@dataclass(frozen=True, slots=True, eq=False)
class FlatBlocks:
    """int32 accumulators -> codes, whole blocks of the flat array by one stage, the rest by another; per tensor."""

    whole: OutputStage
    tail: OutputStage
    block: int

    def __call__(self, accumulators: Array, pipeline: OutputPipeline) -> Array:
        """Codes of contiguous `accumulators`, of any shape, with zero point and clamp of `pipeline`."""
        flat = accumulators.reshape(-1)
        at = in_whole_blocks(flat.size, self.block)
        codes = replace(pipeline, stage=self.whole)(flat)
        codes[at:] = replace(pipeline, stage=self.tail)(flat[at:])
        return codes.reshape(accumulators.shape)
