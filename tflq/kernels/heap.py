"""Binary heaps of positions, ordered by keys: which of equal keys comes first is up to these steps.

They are those of libstdc++'s heaps, which std::priority_queue and std::partial_sort rest on; the largest key is on top.
Source: libstdc++ bits/stl_heap.h __push_heap, __adjust_heap, __make_heap; bits/stl_algo.h __heap_select.
"""

from __future__ import annotations

from tflq.numerics.compiled import Array, Int, compiled


@compiled
def sift_up(keys: Array, heap: Array, place: Int, top: Int, moved: Int) -> None:
    """Put `moved` at `place`, or as far above as its key takes it, but not above `top`."""
    while place > top:
        parent = (place - 1) // 2
        if not keys[heap[parent]] < keys[moved]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = moved


@compiled
def sift_down(keys: Array, heap: Array, place: Int, size: Int, moved: Int) -> None:
    """Let the hole at `place` sink to the bottom along the larger children, of equal ones the right; fill it there."""
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
    """Add a position to a heap of `size`."""
    sift_up(keys, heap, size, 0, moved)


@compiled
def pop(keys: Array, heap: Array, size: Int) -> Int:
    """Take the top out of a heap of `size`."""
    top = heap[0]
    if size > 1:
        sift_down(keys, heap, 0, size - 1, heap[size - 1])
    return top


@compiled
def least(keys: Array, count: Int, order: Array) -> None:
    """Fill `order` with all positions, of which the first `count` are those of the smallest keys in rising order."""
    size = len(keys)
    for i in range(size):
        order[i] = i
    for parent in range((count - 2) // 2, -1, -1):
        sift_down(keys, order, parent, count, order[parent])
    for i in range(count, size):
        if keys[order[i]] < keys[order[0]]:
            moved = order[i]
            order[i] = order[0]
            sift_down(keys, order, 0, count, moved)
    for last in range(count - 1, 0, -1):
        moved = order[last]
        order[last] = order[0]
        sift_down(keys, order, 0, last, moved)
