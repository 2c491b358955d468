"""Choosing boxes: the float32 arithmetic that NON_MAX_SUPPRESSION and TFLite_Detection_PostProcess share.

Boxes are (y1, x1, y2, x2), one row each.
Source: LiteRT 2.3, reference/non_max_suppression.h ComputeIntersectionOverUnion, NonMaxSuppression;
detection_postprocess.cc NonMaxSuppressionSingleClassHelper.
"""

from __future__ import annotations

import math

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import most, ranges
from tflq.engine.kernels.families.heap import pop, push
from tflq.typing import Array

#: Work of one overlap.
_OVERLAP = 16


@compiled
def overlap(boxes: Array, i: Int, j: Int) -> Real:
    """Return intersection over union, float32, of two boxes whose corners may be in any order; 0 if either is empty.

    The caller guarantees: `boxes` is (N, 4), `i` and `j` are in [0, N).
    """
    i_top, i_bottom = min(boxes[i, 0], boxes[i, 2]), max(boxes[i, 0], boxes[i, 2])
    i_left, i_right = min(boxes[i, 1], boxes[i, 3]), max(boxes[i, 1], boxes[i, 3])
    j_top, j_bottom = min(boxes[j, 0], boxes[j, 2]), max(boxes[j, 0], boxes[j, 2])
    j_left, j_right = min(boxes[j, 1], boxes[j, 3]), max(boxes[j, 1], boxes[j, 3])
    i_area = (i_bottom - i_top) * (i_right - i_left)
    j_area = (j_bottom - j_top) * (j_right - j_left)
    if i_area <= 0 or j_area <= 0:
        return np.float32(0)
    height = max(min(i_bottom, j_bottom) - max(i_top, j_top), np.float32(0))
    width = max(min(i_right, j_right) - max(i_left, j_left), np.float32(0))
    area = height * width
    return area / (i_area + j_area - area)


def suppress(
    boxes: Array,
    scores: Array,
    count: int,
    iou_threshold: Real,
    score_threshold: Real,
    scale: Real,
    indices: Array,
    selected_scores: Array,
) -> int:
    """Select at most `count` boxes by falling score; those that overlap a selected one too much are left out.

    `scale` (0: no decay) makes the score of a box fall with its overlap, by exp(scale * iou * iou). `scores` is worked
    upon. Fills `indices` and `selected_scores`, and gives how many were selected. Ties are as the heap has them.

    Prepare guarantees: `boxes` is (N, 4), `scores` (N), and `count` is not negative; `indices` and `selected_scores`
    hold `count` elements.
    """
    heap, begin = np.empty(len(scores), np.int64), np.zeros(len(scores), np.int64)
    size = 0
    for start, stop in ranges(len(scores), _OVERLAP):
        size = _fill(scores, score_threshold, heap, size, start, stop)
    limit, selected = min(size, count), 0
    while selected < limit and size > 0:
        selected, size = _select(
            boxes,
            scores,
            limit,
            iou_threshold,
            score_threshold,
            scale,
            indices,
            selected_scores,
            heap,
            begin,
            selected,
            size,
            most(_OVERLAP),
        )
    return int(selected)


@compiled
def _fill(scores: Array, score_threshold: Real, heap: Array, size: Int, start: Int, stop: Int) -> Int:
    """Put boxes from `start` to `stop` into a heap of `size`; gives its new size.

    The caller guarantees: `start` and `stop` lie in `scores`, `heap` has room for all of them.
    """
    for i in range(start, stop):
        if scores[i] > score_threshold:
            push(scores, heap, size, i)
            size += 1
    return size


@compiled
def _select(
    boxes: Array,
    scores: Array,
    limit: Int,
    iou_threshold: Real,
    score_threshold: Real,
    scale: Real,
    indices: Array,
    selected_scores: Array,
    heap: Array,
    begin: Array,
    selected: Int,
    size: Int,
    passes: Int,
) -> tuple[Int, Int]:
    """Select until there are `limit` boxes or `passes` are used up; return the number selected and the heap's size.

    The caller guarantees: `scores`, `heap` and `begin` have an element for every row of `boxes`, `indices` and
    `selected_scores` at least `limit`, of which `selected` are filled; the first `size` of `heap` name rows.
    """
    while selected < limit and size > 0 and passes > 0:
        candidate = pop(scores, heap, size)
        passes -= 1
        size -= 1
        original = scores[candidate]
        dropped = False
        for j in range(selected - 1, begin[candidate] - 1, -1):
            iou = overlap(boxes, candidate, indices[j])
            passes -= 1
            if iou >= iou_threshold:
                dropped = True
                break
            if scale != 0:
                scores[candidate] = scores[candidate] * np.float32(math.exp(scale * iou * iou))
            if scores[candidate] <= score_threshold:
                break
        begin[candidate] = selected
        if dropped:
            continue
        if scores[candidate] == original:
            indices[selected] = candidate
            selected_scores[selected] = original
            selected += 1
        if scores[candidate] > score_threshold:
            push(scores, heap, size, candidate)
            size += 1
    return selected, size


def choose(boxes: Array, order: Array, limit: int, iou_threshold: Real, chosen: Array) -> int:
    """Walk through the boxes in `order`; take each that no box taken before overlaps by more than the threshold.

    Fills `chosen` with at most `limit` of them and gives how many there are.

    Prepare guarantees: `boxes` is (N, 4). Eval guarantees: `order` names boxes in [0, N), `chosen` holds `limit`
    elements.
    """
    active = np.ones(len(order), np.bool_)
    count = 0
    for start, stop in ranges(len(order), _OVERLAP * len(order)):
        count = int(_choose(boxes, order, start, stop, limit, iou_threshold, active, chosen, count))
    return count


@compiled
def _choose(
    boxes: Array,
    order: Array,
    start: Int,
    stop: Int,
    limit: Int,
    iou_threshold: Real,
    active: Array,
    chosen: Array,
    count: Int,
) -> Int:
    """Choose from `start` to `stop`, after `count` chosen before; return the new count.

    The caller guarantees: `order` names rows of `boxes`, `active` is as long, 0 <= `start` <= `stop` <= its length;
    `chosen` has room for `limit`.
    """
    for i in range(start, stop):
        if count >= limit:
            break
        if not active[i]:
            continue
        chosen[count] = order[i]
        count += 1
        for j in range(i + 1, len(order)):
            if active[j] and overlap(boxes, order[i], order[j]) > iou_threshold:
                active[j] = False
    return count
