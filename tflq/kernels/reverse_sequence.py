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

import numpy as np

from tflq.errors import UndefinedResultError
from tflq.kernels.families.element_types import INDEX
from tflq.kernels.kernel import Array, Kernel, Node, Prepared
from tflq.kernels.operands import require_rank, require_same_type
from tflq.numerics.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Positions along the sequence, and the shape of one length per batch, both to broadcast against the input."""

    sequence: int
    positions: Array
    lengths: tuple[int, ...]


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
    along = tuple(-1 if d == sequence else 1 for d in range(rank))
    across = tuple(-1 if d == batch else 1 for d in range(rank))
    positions = np.arange(x.shape[sequence], dtype=np.int64).reshape(along)
    return Prepared((x.shape,), OpData(sequence, positions, across), eval_reverse_sequence)


def eval_reverse_sequence(data: OpData, x: Array, lengths: Array) -> Array:
    """Source: reference_ops::ReverseSequence. A length of 0 or less turns nothing around."""
    size = x.shape[data.sequence]
    if lengths.size and lengths.max() > size:
        raise UndefinedResultError("ReverseSequence", f"length {lengths.max()} of a sequence of {size}")
    last = lengths.astype(np.int64).reshape(data.lengths) - 1
    sources = np.where(data.positions <= last, last - data.positions, data.positions)
    return np.take_along_axis(x, sources, data.sequence)


_X = "float32|uint8|int16|int32|int64"

KERNELS = (Kernel("REVERSE_SEQUENCE", f"{_X} {INDEX} -> {_X}", prepare, (1, 1)),)
