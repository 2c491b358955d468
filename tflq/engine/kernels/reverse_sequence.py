"""REVERSE_SEQUENCE: turn the first n elements of a dimension around, with an n for every batch.

| operand | shape               | types                               | quantization |
|---------|---------------------|-------------------------------------|--------------|
| x       | any                 | float32, uint8, int16, int32, int64 | passed by    |
| lengths | (size of batch_dim) | int32, int64                        |              |
| y       | as x                | as x                                | passed by    |

Options: seq_dim, batch_dim, neither negative. The source checks the first length alone; a later one that is too large
writes outside the tensor.
Source: LiteRT 2.3, reverse_sequence.cc; reference_ops.h ReverseSequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The shape as (before, first of both axes, between, second, behind), and whether the batch is the first."""

    blocks: tuple[int, int, int, int, int]
    is_batch_first: bool


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one length for every batch."""
    x, lengths = node.input(0), node.input(1)
    require_same_type(node, x, node.outputs[0])
    require_rank(node, lengths, 1)
    sequence, batch, rank = int(node.options["seq_dim"]), int(node.options["batch_dim"]), len(x.shape)
    dims = 0 <= sequence < rank and 0 <= batch < rank and sequence != batch
    node.check(dims, "seq_dim and batch_dim", expected=f"two of 0 to {rank - 1}", got=[sequence, batch])
    expected = (x.shape[batch],)
    node.check(lengths.shape == expected, "shape", lengths, expected=list(expected), got=list(lengths.shape))
    first, second = sorted((sequence, batch))
    between = prod(x.shape[first + 1 : second])
    blocks = prod(x.shape[:first]), x.shape[first], between, x.shape[second], prod(x.shape[second + 1 :])
    return Prepared((x.shape,), OpData(blocks, batch < sequence), eval_reverse_sequence)


@filling(lambda data, x, lengths: (x.shape, x.dtype))
def eval_reverse_sequence(data: OpData, out: Array, x: Array, lengths: Array) -> Call:
    """Source: reference_ops::ReverseSequence. A length of 0 or less turns nothing around."""
    source, target = (np.asarray(a, order="C").reshape(data.blocks) for a in (x, out))
    size = data.blocks[3 if data.is_batch_first else 1]

    def call() -> None:
        if lengths.size and lengths.max() > size:
            raise UndefinedResultError("ReverseSequence", f"length {lengths.max()} of a sequence of {size}")
        _reverse(source, lengths, data.is_batch_first, target)

    return call


@in_pieces(source="o", target="o")
@compiled
def _reverse(source: Array, lengths: Array, is_batch_first: bool, target: Array) -> None:
    """Turn the first lengths[b] moments around, of arrays (outer, batch, between, time, inner), or time before batch.

    Eval guarantees: both arrays have that shape, there is a length for every batch, and none is beyond the time.
    """
    outer, firsts, between, seconds, inner = source.shape
    for o in range(outer):
        for first in range(firsts):
            for m in range(between):
                for second in range(seconds):
                    b, t = (first, second) if is_batch_first else (second, first)
                    length = np.int64(lengths[b])
                    origin = length - 1 - t if t < length else t
                    f, s = (first, origin) if is_batch_first else (origin, second)
                    for i in range(inner):
                        target[o, first, m, second, i] = source[o, f, m, s, i]


_X = "float32|uint8|int16|int32|int64"

KERNELS = (Kernel("REVERSE_SEQUENCE", f"{_X} {INDEX} -> {_X}", prepare, (1, 1)),)
