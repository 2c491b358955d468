"""TFLite_Detection_PostProcess and NON_MAX_SUPPRESSION: choose boxes.

Choosing boxes: the float32 arithmetic that NON_MAX_SUPPRESSION and TFLite_Detection_PostProcess share.

Boxes are (y1, x1, y2, x2), one row each.
Source: LiteRT 2.3, reference/non_max_suppression.h ComputeIntersectionOverUnion, NonMaxSuppression;
detection_postprocess.cc NonMaxSuppressionSingleClassHelper.

TFLite_Detection_PostProcess: from box encodings and class scores to the boxes that are detected.

| operand   | shape              | types          | quantization |
|-----------|--------------------|----------------|--------------|
| encodings | (1, N, 4 or more)  | float32, uint8 | per tensor   |
| scores    | (1, N, C or C + 1) | float32, uint8 | per tensor   |
| anchors   | (N, 4)             | as encodings   | per tensor   |
| boxes     | (1, D * K, 4)      | float32        | none         |
| classes   | (1, D * K)         | float32        | none         |
| scores    | (1, D * K)         | float32        | none         |
| count     | (1)                | float32        | none         |

Options: max_detections (D), max_classes_per_detection (K), num_classes (C), nms_score_threshold, nms_iou_threshold,
y_scale, x_scale, h_scale, w_scale, use_regular_nms, detections_per_class (100).
Encodings and anchors are (y, x, h, w) of the centre and the size. A first class more than C is the background.
Behind the detections that it counts, LiteRT's fast form leaves its memory unset; here those elements are 0.
Exactness: exact on the same libm (exp of float64).
Source: LiteRT 2.3, detection_postprocess.cc; optimized_ops.h Dequantize, ArgMaxVector.

The kernels of NON_MAX_SUPPRESSION_V4 and V5, which LiteRT distinguishes by their number of operands alone.

Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval, ResetUnusedElementsToZeroes.

NON_MAX_SUPPRESSION_V4, _V5: the boxes of highest score that do not overlap each other too much.

| operand         | shape        | types   |
|-----------------|--------------|---------|
| boxes           | (N, 4)       | float32 |
| scores          | (N)          | float32 |
| count           | scalar       | int32   |
| iou threshold   | scalar       | float32 |
| score threshold | scalar       | float32 |
| V5: sigma       | scalar, >= 0 | float32 |
| indices         | count        | int32   |
| V5: scores      | count        | float32 |
| selected        | scalar       | int32   |

Boxes are (y1, x1, y2, x2), corners in any order. What is not selected is 0. The number of operands decides between V4
and V5. V5 multiplies a score by exp(-iou**2 / (2 * sigma)) for each selected box that it overlaps, unless sigma is 0.
Exactness: V5 is exact on the same libm (expf).
Source: LiteRT 2.3, non_max_suppression.cc Prepare, Eval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.engine.jit.compiled import Int, Real, compiled
from tflq.engine.jit.pieces import most, ranges
from tflq.engine.kernels.checks import integer, require_rank
from tflq.engine.kernels.families.custom_options import flag, option_integer, options_of, real
from tflq.engine.kernels.families.heap import least, pop, push
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.libm import exp
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
        selected, size = _select_box_selection(
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
def _select_box_selection(
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


_DETECTIONS_PER_CLASS = 100
_LANES = 8  # elements that Dequantize takes at once


@dataclass(frozen=True, slots=True, eq=False)
class BoxCodes:
    """Quantization of an operand; scale 0 for float32."""

    scale: np.float32
    zero_point: ZeroPoint


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """The options, and how the operands are quantized."""

    detections: int
    classes_each: int  # classes per detection
    per_class: int  # detections per class
    classes: int
    background: int  # 1 where the first class is the background, else 0
    score_threshold: np.float32
    iou_threshold: np.float32
    scales: Array  # of y, x, h, w; float64
    regular: bool
    encodings: BoxCodes
    scores: BoxCodes
    anchors: BoxCodes


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse faulty options and shapes. LiteRT finds most of these faults when it runs; each would fail the run."""
    encodings, scores, anchors = node.input(0), node.input(1), node.input(2)
    options = options_of(node)
    classes = option_integer(options, "num_classes")
    _check_shapes(node, encodings, scores, anchors, classes)
    detections = option_integer(options, "max_detections")
    per_class = min(option_integer(options, "detections_per_class", _DETECTIONS_PER_CLASS), detections)
    regular, classes_each = flag(options, "use_regular_nms"), option_integer(options, "max_classes_per_detection")
    iou_threshold = np.float32(real(options, "nms_iou_threshold"))
    node.check(bool(0 < iou_threshold <= 1), "nms_iou_threshold", expected="in (0, 1]", got=iou_threshold)
    node.check(detections >= 0, "max_detections", expected="at least 0", got=detections)
    node.check(classes_each > 0, "max_classes_per_detection", expected="at least 1", got=classes_each)
    node.check(not regular or per_class > 0, "detections_per_class", expected="at least 1", got=per_class)
    data = OpData(
        detections=detections,
        classes_each=classes_each,
        per_class=per_class,
        classes=classes,
        background=scores.shape[2] - classes,
        score_threshold=np.float32(real(options, "nms_score_threshold")),
        iou_threshold=iou_threshold,
        scales=np.array([np.float32(real(options, f"{axis}_scale")) for axis in "yxhw"], np.float64),
        regular=regular,
        encodings=BoxCodes(encodings.scale, encodings.zero_point),
        scores=BoxCodes(scores.scale, scores.zero_point),
        anchors=BoxCodes(anchors.scale, anchors.zero_point),
    )
    count = detections * classes_each
    return Prepared(((1, count, 4), (1, count), (1, count), (1,)), data, eval_detections)


def _check_shapes(node: Node, encodings: Operand, scores: Operand, anchors: Operand, classes: int) -> None:
    require_rank(node, encodings, 3)
    require_rank(node, scores, 3)
    require_rank(node, anchors, 2)
    boxes = encodings.shape[1]
    node.check(encodings.shape[0] == 1 and scores.shape[0] == 1, "batch", got=(encodings.shape[0], scores.shape[0]))
    node.check(encodings.shape[2] >= 4, "numbers of a box", encodings, expected="at least 4", got=encodings.shape[2])
    node.check(scores.shape[1] == boxes, "boxes", scores, expected=boxes, got=scores.shape[1])
    node.check(
        anchors.shape[0] >= boxes and anchors.shape[1] == 4, "anchors", anchors, expected=(boxes, 4), got=anchors.shape
    )
    node.check(classes >= 1, "num_classes", expected="at least 1", got=classes)
    node.check(
        scores.shape[2] - classes in (0, 1), "classes", scores, expected=f"{classes} or one more", got=scores.shape[2]
    )


def eval_detections(data: OpData, encodings: Array, scores: Array, anchors: Array) -> tuple[Array, ...]:
    """Source: Eval. Boxes are decoded in float64 and rounded to float32; everything after that is float32."""
    boxes = decode(data, encodings[0, :, :4], anchors[: encodings.shape[1]])
    if np.any(boxes[:, 0] > boxes[:, 2]) or np.any(boxes[:, 1] > boxes[:, 3]):
        raise ValueError("a decoded box has a negative size")
    of_class = dequantize(data.scores, scores[0])[:, data.background :]
    picked = (regular if data.regular else fast)(data, boxes, of_class)
    count = data.detections * data.classes_each
    out_boxes, out_classes = np.zeros((1, count, 4), np.float32), np.zeros((1, count), np.float32)
    out_scores = np.zeros((1, count), np.float32)
    place, box, label, detected = picked
    out_boxes[0, place], out_classes[0, place], out_scores[0, place] = boxes[box], label, of_class[box, label]
    return out_boxes, out_classes, out_scores, np.array([detected], np.float32)


def decode(data: OpData, encodings: Array, anchors: Array) -> Array:
    """Return corners (top, left, bottom, right). Source: DecodeCenterSizeBoxes."""
    code, anchor = (_centre(q, x).astype(np.float64) for q, x in ((data.encodings, encodings), (data.anchors, anchors)))
    size = anchor[:, 2:]
    centre = (code[:, :2] / data.scales[:2] * size + anchor[:, :2]).astype(np.float32)
    half = (0.5 * exp(code[:, 2:] / data.scales[2:]) * size).astype(np.float32)
    return np.concatenate([centre - half, centre + half], axis=1)


def _centre(codes: BoxCodes, x: Array) -> Array:
    """Source: Dequantizer. One float32 product."""
    return x if x.dtype == np.float32 else (x.astype(np.float32) - np.float32(codes.zero_point)) * codes.scale


def dequantize(codes: BoxCodes, x: Array) -> Array:
    """Compute whole eights as scale * code - scale * zero point in float32, the rest in float64. Source: Dequantize."""
    if x.dtype == np.float32:
        return x
    flat = x.reshape(-1)
    whole = flat.size // _LANES * _LANES
    shift = np.float32(np.float64(codes.scale) * -codes.zero_point)
    out = flat.astype(np.float32) * codes.scale + shift
    out[whole:] = np.float64(codes.scale) * (flat[whole:].astype(np.int32) - codes.zero_point)
    return out.reshape(x.shape)


def fast(data: OpData, boxes: Array, scores: Array) -> tuple[Array, Array, Array, int]:
    """Suppress boxes by the best score of each; return (place, box, class) of all outputs, and the number of boxes.

    Source: NonMaxSuppressionMultiClassFastHelper.
    """
    columns = min(data.classes_each, data.classes)
    ranked = best_classes(scores, columns)
    best = np.take_along_axis(scores, ranked[:, :1], 1)[:, 0]
    chosen = single_class(data, boxes, best, data.detections)
    place = np.arange(len(chosen))[:, None] * data.classes_each + np.arange(columns)
    box = np.repeat(chosen, columns)
    return place.reshape(-1), box, ranked[chosen].reshape(-1), len(chosen)


def best_classes(scores: Array, count: int) -> Array:
    """Return the `count` best classes of each box, best first. Of equal ones a single best is the first.

    Source: DecreasingPartialArgSort.
    """
    if count == 1:
        return np.asarray(np.argmax(scores, axis=1)[:, None])
    order = np.empty(scores.shape, np.int64)
    for row, out in zip(-scores, order, strict=True):
        least(row, count, out)
    return order[:, :count]


def regular(data: OpData, boxes: Array, scores: Array) -> tuple[Array, Array, Array, int]:
    """Suppress class by class; keep the best of all classes, of equal scores those of earlier classes.

    Source: NonMaxSuppressionMultiClassRegularHelper.
    """
    box, label = np.empty(0, np.int64), np.empty(0, np.int64)
    for column in np.flatnonzero((scores >= data.score_threshold).any(axis=0)):
        chosen = single_class(data, boxes, scores[:, column], data.per_class)
        box, label = np.append(box, chosen), np.append(label, np.full(len(chosen), column))
        kept = np.argsort(-scores[box, label], kind="stable")[: data.detections]
        box, label = box[kept], label[kept]
    return np.arange(len(box)), box, label, len(box)


def single_class(data: OpData, boxes: Array, scores: Array, limit: int) -> Array:
    """Return at most `limit` boxes by falling score, of equal ones the first; none overlaps another too much."""
    kept = np.flatnonzero(scores >= data.score_threshold)
    order = kept[np.argsort(-scores[kept], kind="stable")]
    chosen = np.empty(min(len(order), limit), np.int64)
    return chosen[: choose(boxes, order, len(chosen), data.iou_threshold, chosen)]


_DETECTION_POSTPROCESS = tuple(
    Kernel("TFLite_Detection_PostProcess", f"{t} float32|uint8 {t} -> float32 float32 float32 float32", prepare)
    for t in ("float32", "uint8")
)


def kernels(op: str) -> tuple[Kernel, ...]:
    """Return both forms under one operator's name."""
    plain = "float32 float32 int32 float32 float32"
    return (
        Kernel(op, f"{plain} -> int32 int32", prepare_nms, (1, 1), shape_operands=(2,)),
        Kernel(op, f"{plain} float32 -> int32 float32 int32", prepare_nms, (1, 1), shape_operands=(2,)),
    )


def prepare_nms(node: Node, arithmetic: Arithmetic) -> Prepared:
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


_NON_MAX_SUPPRESSION = (*kernels("NON_MAX_SUPPRESSION_V4"), *kernels("NON_MAX_SUPPRESSION_V5"))

#: The rows of all operators above.
KERNELS = (*_DETECTION_POSTPROCESS, *_NON_MAX_SUPPRESSION)
