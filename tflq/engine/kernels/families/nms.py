"""The kernels of NON_MAX_SUPPRESSION_V4 and V5, which LiteRT distinguishes by their number of operands alone.

Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval, ResetUnusedElementsToZeroes.
"""

from __future__ import annotations

import numpy as np

from tflq.engine.kernels.families.box_selection import suppress
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.operands import integer, require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


def kernels(op: str) -> tuple[Kernel, ...]:
    """Return both forms under one operator's name."""
    plain = "float32 float32 int32 float32 float32"
    return (
        Kernel(op, f"{plain} -> int32 int32", prepare, (1, 1), shape_operands=(2,)),
        Kernel(op, f"{plain} float32 -> int32 float32 int32", prepare, (1, 1), shape_operands=(2,)),
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Require one score for each box and scalar thresholds."""
    boxes, scores = node.input(0), node.input(1)
    require_rank(node, boxes, 2)
    require_rank(node, scores, 1)
    node.check(boxes.shape[1] == 4, "numbers of a box", boxes, expected=4, got=boxes.shape[1])
    node.check(boxes.shape[0] == scores.shape[0], "scores", scores, expected=boxes.shape[0], got=scores.shape[0])
    for position in range(2, len(node.inputs)):
        require_rank(node, node.input(position), 0)
    count = integer(node, 2)
    node.check(count >= 0, "count", node.input(2), expected="at least 0", got=count)
    if len(node.inputs) == 6:
        return Prepared(((count,), (count,), ()), count, eval_soft)
    return Prepared(((count,), ()), count, eval_hard)


def eval_hard(count: int, boxes: Array, scores: Array, _: Array, iou: Array, least: Array) -> tuple[Array, ...]:
    """Select boxes without decay; do not return the scores."""
    indices, _scores, selected = _select(count, boxes, scores, iou, least, np.float32(0))
    return indices, selected


def eval_soft(
    count: int, boxes: Array, scores: Array, _: Array, iou: Array, least: Array, sigma: Array
) -> tuple[Array, ...]:
    """Select boxes. The decay's scale is a float64 quotient, rounded to float32."""
    if sigma < 0:
        raise ValueError(f"sigma {sigma} is negative")
    scale = np.float32(-0.5 / np.float64(sigma)) if sigma > 0 else np.float32(0)
    return _select(count, boxes, scores, iou, least, scale)


def _select(
    count: int, boxes: Array, scores: Array, iou: Array, least: Array, scale: np.float32
) -> tuple[Array, Array, Array]:
    indices, selected_scores = np.zeros(count, np.int32), np.zeros(count, np.float32)
    worked = np.array(scores, order="C")
    selected = suppress(
        np.ascontiguousarray(boxes), worked, count, np.float32(iou), np.float32(least), scale, indices, selected_scores
    )
    return indices, selected_scores, np.asarray(selected, np.int32)
