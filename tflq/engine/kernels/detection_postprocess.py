"""TFLite_Detection_PostProcess: from box encodings and class scores to the boxes that are detected.

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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.engine.kernels.families.box_selection import choose
from tflq.engine.kernels.families.custom_options import flag, integer, options_of, real
from tflq.engine.kernels.families.heap import least
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.kernels.operands import require_rank
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import ZeroPoint
from tflq.engine.numerics.libm_double import exp
from tflq.typing import Array

_DETECTIONS_PER_CLASS = 100
_LANES = 8  # elements that Dequantize takes at once


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
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
    encodings: Codes
    scores: Codes
    anchors: Codes


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse faulty options and shapes. LiteRT finds most of these faults when it runs; each would fail the run."""
    encodings, scores, anchors = node.input(0), node.input(1), node.input(2)
    options = options_of(node)
    classes = integer(options, "num_classes")
    _check_shapes(node, encodings, scores, anchors, classes)
    detections = integer(options, "max_detections")
    per_class = min(integer(options, "detections_per_class", _DETECTIONS_PER_CLASS), detections)
    regular, classes_each = flag(options, "use_regular_nms"), integer(options, "max_classes_per_detection")
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
        encodings=Codes(encodings.scale, encodings.zero_point),
        scores=Codes(scores.scale, scores.zero_point),
        anchors=Codes(anchors.scale, anchors.zero_point),
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


def _centre(codes: Codes, x: Array) -> Array:
    """Source: Dequantizer. One float32 product."""
    return x if x.dtype == np.float32 else (x.astype(np.float32) - np.float32(codes.zero_point)) * codes.scale


def dequantize(codes: Codes, x: Array) -> Array:
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
    for column in range(data.classes):
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


KERNELS = tuple(
    Kernel("TFLite_Detection_PostProcess", f"{t} float32|uint8 {t} -> float32 float32 float32 float32", prepare)
    for t in ("float32", "uint8")
)
