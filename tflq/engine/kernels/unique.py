"""UNIQUE: the different values of a vector in order of appearance, and for every element which one it is.

| operand | shape             | types                                     |
|---------|-------------------|-------------------------------------------|
| x       | (n)               | float32, uint8, int8, int16, int32, int64 |
| y       | (number of values)| as x                                      |
| index   | (n)               | int32, int64                              |

Options: idx_out_type, which must be the index's type. NaN has no place in the source's ordered map.
Source: LiteRT 2.3, unique.cc EvalImpl.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import in_pieces
from tflq.engine.kernels.families.element_types import INDEX
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import require_rank, require_same_type
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.typing import Array

#: Bytes for each value: NumPy's sort with positions, the order of first ones, and at most as many unique values.
_SCRATCH = 60
#: Steps for each value, on average, from which on values are sorted instead of looked up.
_STEPS = 8


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare outputs whose number of values only the run determines."""
    x, (values, index) = node.input(0), node.outputs
    require_same_type(node, x, values)
    require_rank(node, x, 1)
    index_type = int(node.options["idx_out_type"])
    node.check(index_type == index.type, "idx_out_type", index, expected=int(index.type), got=index_type)
    scratch = _SCRATCH * math.prod(x.shape)
    return Prepared((None, x.shape), np.dtype(index.type.label), eval_unique, scratch=scratch)


def eval_unique(index_type: np.dtype[np.generic], x: Array) -> tuple[Array, Array]:
    """Source: EvalImpl. Of equal values (0.0 and -0.0) the first one is kept."""
    is_float = x.dtype == np.float32
    if is_float and np.isnan(x).any():
        raise UndefinedResultError("Unique", "NaN among the values")
    keys = (x + np.float32(0)).view(np.int32) if is_float else x  # the sum takes the sign off a zero
    slots = np.zeros(1 << (2 * x.size).bit_length(), np.int32 if x.size < 1 << 31 else np.int64)
    values, first, state = np.empty(x.size, keys.dtype), np.empty(x.size, np.int64), np.zeros(2, np.int64)
    which = np.empty(x.size, index_type)
    _number(keys, 0, slots, values, first, which, state, _STEPS * (x.size + 100))
    if state[1] > _STEPS * (x.size + 100):
        return _sort(index_type, x)
    return x[first[: state[0]]], which


def _sort(index_type: np.dtype[np.generic], x: Array) -> tuple[Array, Array]:
    """Return the same by sorting, which takes the same time for any values."""
    _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return x[first[order]], rank[which].astype(index_type)


@in_pieces(16, keys="n", start="n", which="n")
@compiled
def _number(
    keys: Array, start: Int, slots: Array, values: Array, first: Array, which: Array, state: Array, most: Int
) -> None:
    """Fill `which` (N) with the numbers of integer `keys` (N), in order of their appearance.

    `values` and `first` are the values and the positions of the `state[0]` different ones so far. Slots are found by a
    key's digest and hold a number plus one; the next slot is taken if another key is there, which `state[1]` counts. If
    it exceeds `most`, the call ends early. `start` is the position of the first key.

    Eval guarantees: the number of slots is a power of two and larger than that of all keys, for each of which `values`
    and `first` have room.
    """
    mask = slots.size - 1
    for i in range(keys.size):
        key = keys[i]
        low, high = np.int64(key) & 0xFFFFFFFF, (np.int64(key) >> 32) & 0xFFFFFFFF
        slot = ((low * 663608941 + high * 536870909) >> 20) & mask  # the sum is below 2**63
        while slots[slot] > 0 and values[slots[slot] - 1] != key:
            slot = (slot + 1) & mask
            state[1] += 1
        if state[1] > most:
            return
        if slots[slot] == 0:
            values[state[0]] = key
            first[state[0]] = start + i
            state[0] += 1
            slots[slot] = state[0]
        which[i] = slots[slot] - 1


_X = "float32|uint8|int8|int16|int32|int64"

KERNELS = (Kernel("UNIQUE", f"{_X} -> {_X} {INDEX}", prepare, (1, 1)),)
