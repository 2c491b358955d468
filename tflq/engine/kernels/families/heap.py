"""Binary heaps of positions, ordered by keys: which of equal keys comes first is up to these steps.

They are those of libstdc++'s heaps, which std::priority_queue and std::partial_sort rest on; the largest key is on top.
Source: libstdc++ bits/stl_heap.h __push_heap, __adjust_heap, __make_heap; bits/stl_algo.h __heap_select.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.pieces import ranges
from tflq.typing import Array


@compiled
def sift_up(keys: Array, heap: Array, place: Int, top: Int, moved: Int) -> None:
    """Put `moved` at `place`, or as far above as its key takes it, but not above `top`.

    The caller guarantees: 0 <= `top` <= `place` < heap.size, and `moved` and all of heap[:place] are in [0, keys.size).
    """
    while place > top:
        parent = (place - 1) // 2
        if not keys[heap[parent]] < keys[moved]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = moved


@compiled
def sift_down(keys: Array, heap: Array, place: Int, size: Int, moved: Int) -> None:
    """Let the hole at `place` sink to the bottom along the larger children, of equal ones the right; fill it there.

    The caller guarantees: `place` < max(`size`, 1) <= heap.size, and `moved` and all of heap[:size] are in [0,
    keys.size).
    """
    top = place
    while 2 * place + 2 < size:
        child = 2 * place + 2
        if keys[heap[child]] < keys[heap[child - 1]]:
            child -= 1
        heap[place] = heap[child]
        place = child
    if 2 * place + 2 == size:
        heap[place] = heap[2 * place + 1]
        place = 2 * place + 1
    sift_up(keys, heap, place, top, moved)


@compiled
def push(keys: Array, heap: Array, size: Int, moved: Int) -> None:
    """Add a position to a heap of `size`.

    The caller guarantees: `size` < heap.size, and `moved` and all of heap[:size] are in [0, keys.size).
    """
    sift_up(keys, heap, size, 0, moved)


@compiled
def pop(keys: Array, heap: Array, size: Int) -> Int:
    """Take the top out of a heap of `size`.

    The caller guarantees: 1 <= `size` <= heap.size, and all of heap[:size] are in [0, keys.size).
    """
    top = heap[0]
    if size > 1:
        sift_down(keys, heap, 0, size - 1, heap[size - 1])
    return top


#: Steps from the top of a heap to its bottom, and back, at most.
_DEPTH = 64


def least(keys: Array, count: int, order: Array) -> None:
    """Fill `order` with all positions, of which the first `count` are those of the smallest keys in rising order."""
    order[:] = np.arange(len(keys))
    for start, stop in ranges(count // 2, _DEPTH):
        _build(keys, order, count, start, stop)
    for start, stop in ranges(len(keys) - count, _DEPTH):
        _select(keys, order, count, count + start, count + stop)
    for start, stop in ranges(count - 1, _DEPTH):
        _sort(keys, order, count - 1 - start, count - 1 - stop)


@compiled
def _build(keys: Array, order: Array, count: Int, start: Int, stop: Int) -> None:
    """Build a heap of the first `count`, from its last parent to its first: the parents from `start` to `stop`.

    The caller guarantees: `order` names elements of `keys`, `count` <= its length, `stop` <= `count` // 2.
    """
    for i in range(start, stop):
        parent = count // 2 - 1 - i
        sift_down(keys, order, parent, count, order[parent])


@compiled
def _select(keys: Array, order: Array, count: Int, start: Int, stop: Int) -> None:
    """Let those from `start` to `stop` into the heap that are less than its top.

    The caller guarantees: `order` names elements of `keys`, 1 <= `count` <= `start` <= `stop` <= its length.
    """
    for i in range(start, stop):
        if keys[order[i]] < keys[order[0]]:
            moved = order[i]
            order[i] = order[0]
            sift_down(keys, order, 0, count, moved)


@compiled
def _sort(keys: Array, order: Array, start: Int, stop: Int) -> None:
    """Take the top out of the heap, and put it behind the rest: from place `start` down to, but without, `stop`.

    The caller guarantees: `order` names elements of `keys`, 0 <= `stop` <= `start` < its length.
    """
    for last in range(start, stop, -1):
        moved = order[last]
        order[last] = order[0]
        sift_down(keys, order, 0, last, moved)
