"""Places of an output, grouped by how a kernel may compute them, and inputs that give every value to every group.

A kernel that processes elements in blocks goes through *runs*: the elements of some of the last dimensions, at most the
whole tensor. In a run it processes whole blocks, then the rest. Two places are of one kind if they have equal positions
in the runs of every length, for blocks of every size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from tflq.typing import Array

Ints = NDArray[np.int64]

#: Sizes of the blocks in which kernels process elements.
BLOCKS = (4, 8, 16, 32)


def kinds(shape: Sequence[int], *, last_apart: bool = False) -> Ints:
    """Return the number of its kind for each place of an output of that shape, flat.

    `last_apart` is set if a loop may process a run's last block separately even if it is whole.
    """
    size = int(np.prod(shape))
    at, found = np.arange(size, dtype=np.int64), np.zeros(size, np.int64)
    for run in sorted(set(accumulate(reversed(shape), mul))):
        place = at % run
        for block in BLOCKS:
            found = 2 * found + (place >= run - run % block)
            if last_apart:
                found = 2 * found + (place >= run - 1 - (run - 1) % block)
    return found


def join(labels: Sequence[Array]) -> Ints:
    """Return one number per place that differs if any of the labels differs."""
    joint: Ints = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        numbers = np.unique(label, return_inverse=True)[1].reshape(-1)
        joint = np.unique(joint * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1].reshape(-1)
    return joint


def rounds_for(labels: Ints, count: int) -> int:
    """Return how often all places must be filled until every label has had `count` values."""
    sizes = np.bincount(labels)
    return -(-count // int(sizes[sizes > 0].min()))


def show(labels: Ints, count: int) -> Iterator[Ints]:
    """Yield numbers below `count`, one per place, until each label has had each number at one of its places."""
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    rank = np.empty(labels.size, np.int64)
    rank[order] = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    step = sizes[labels]
    for number in range(rounds_for(labels, count)):
        yield (rank + number * step) % count
