"""Which elements vector code takes, and tables for its blocks.

How vector code and the scalar loop after it share the elements: each rule stated once.

A vector loop takes whole blocks; what is left over is done one by one, often with another rounding.

Operators on 8-bit codes by two tables: one for whole blocks of vector code, one for what is left over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.kernels.families.unary import Tabulated
from tflq.engine.kernels.kernel import Node, Prepare, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stage_roundings import BlockTail
from tflq.engine.numerics.stages import OutputPipeline, OutputStage, StageOf
from tflq.engine.numerics.tables import look_up_8bit
from tflq.typing import Array


def in_whole_blocks(size: int, block: int) -> int:
    """Return the number of `size` elements that fill whole blocks."""
    return size - size % block


def of_equal_rank(a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """Return both shapes with the rank of the longer one: leading 1s are inserted."""
    rank = max(len(a), len(b))
    return (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b


def run_of(a: Shape, b: Shape) -> tuple[int, bool]:
    """Return the length of the runs of vector code, and whether one operand is a single element in them.

    The length is 0 if vector code does not take shapes that broadcast so.

    Shapes are padded to the left to six dimensions; a run is what the operands share at the end, or, where that is one
    element, what one of them repeats. Source: ProcessBroadcastShapes, BinaryBroadcastFiveFold.
    """
    first, second = of_equal_rank(a, b)
    if first == second:
        return prod(first), False
    last = next(i for i in reversed(range(len(first))) if first[i] != second[i])
    if first[last] != 1:
        first, second = second, first
    pairs = list(zip(first, second, strict=True))
    folds = []
    for take in (_share, _first_repeated, _share, _second_repeated, _share):
        size = 1
        while pairs and take(*pairs[-1]):
            size *= max(pairs.pop())
        folds.append(size)
    if pairs:
        return 0, False
    return (folds[0], False) if folds[0] > 1 else (folds[1], True)


def _share(first: int, second: int) -> bool:
    return first == second


def _first_repeated(first: int, second: int) -> bool:
    return first == 1


def _second_repeated(first: int, second: int) -> bool:
    return second == 1


def channel_blocks(arithmetic: Arithmetic, block: int) -> StageOf:
    """Return the stage for whole blocks of channels by vector code, the channels left over one by one."""
    return BlockTail.of(arithmetic.requantize_simd, arithmetic.requantize, block)


def gemm(arithmetic: Arithmetic) -> StageOf:
    """Return the scaling of a matrix product."""
    return arithmetic.requantize_gemm


def requantizing(prepare: Prepare, choose: Callable[[Arithmetic], StageOf]) -> Prepare:
    """Return `prepare` with another scaling of int32 accumulators."""

    def prepare_otherwise(node: Node, arithmetic: Arithmetic) -> Prepared:
        return prepare(node, replace(arithmetic, requantize=choose(arithmetic)))

    return prepare_otherwise


#: Channels that the vector loops of convolutions take at a time.
CHANNELS = 8


def eight_channels(arithmetic: Arithmetic) -> StageOf:
    """Return the stage for whole blocks of eight channels by vector code."""
    return channel_blocks(arithmetic, CHANNELS)


@dataclass(frozen=True, slots=True, eq=False)
class FlatBlocks:
    """int32 accumulators -> codes, whole blocks of the flat array by one stage, the rest by another; per tensor."""

    whole: OutputStage
    tail: OutputStage
    block: int

    def __call__(self, accumulators: Array, pipeline: OutputPipeline) -> Array:
        """Return the codes of contiguous `accumulators`, of any shape, with zero point and clamp of `pipeline`."""
        flat = accumulators.reshape(-1)
        at = in_whole_blocks(flat.size, self.block)
        codes = replace(pipeline, stage=self.whole)(flat)
        codes[at:] = replace(pipeline, stage=self.tail)(flat[at:])
        return codes.reshape(accumulators.shape)


@dataclass(frozen=True, slots=True, eq=False)
class TwoTables:
    """An operator on 8-bit codes whose whole blocks go by another table than what is left over."""

    whole: Tabulated
    tail: Tabulated
    block: int


def eval_tables(data: TwoTables, x: Array) -> Array:
    """Source: Requantize. No rounding: that happened when the tables were computed."""
    codes = np.ascontiguousarray(x).reshape(-1)
    at = in_whole_blocks(codes.size, data.block)
    whole, tail = look_up_8bit(data.whole.table, codes[:at]), look_up_8bit(data.tail.table, codes[at:])
    return np.concatenate((whole, tail)).reshape(x.shape)
