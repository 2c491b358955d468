"""Ranges of detectors' outputs: values at anchors that are not read cost nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.detectors import ANCHORS, CLASSES, detector
from tflq.model.ir import TensorType, view
from tflq.quantization.params import Range
from tflq.quantization.ranges.objectives import Quantizer
from tflq.quantization.ranges.watching import AnchorRanges
from tflq.quantization.recipe import RangeRule
from tflq.quantization.scheme.float_graph import prepare

QUANTIZER = Quantizer(RangeRule.NUDGE, TensorType.INT8)
WHOLE, READ = Range.of(0.0, 500.0), Range.of(0.0, 60.0)


def outputs(count: int = 5) -> tuple[Any, Any]:
    """Return boxes of up to 50 where scores are high, and of 500 elsewhere, with scores."""
    rng = np.random.default_rng(0)
    boxes = np.full((count, 4, ANCHORS), 500.0, np.float32)
    boxes[:, :, :6] = rng.uniform(20, 50, (count, 4, 6))
    scores = np.full((count, CLASSES, ANCHORS), 0.01, np.float32)
    scores[:, 1, :6] = rng.uniform(0.4, 0.9, (count, 6))
    return boxes, scores


@pytest.mark.parametrize("form", ["joint", "apart"])
def test_boxes_that_are_not_read_cost_nothing(form: str) -> None:
    model = prepare(detector(form))
    anchors, graph = AnchorRanges(model), view(detector(form))
    boxes, scores = outputs()
    if form == "joint":
        kept = {graph.outputs[0]: np.concatenate([boxes, scores], axis=1)}
        loss = anchors.loss([graph.outputs[0]], kept, QUANTIZER)
        assert loss is not None
        assert loss(READ)[0] < loss(WHOLE)[0]
        return
    kept = {graph.outputs[0]: boxes, graph.outputs[1]: scores}
    loss = anchors.loss([graph.outputs[0]], kept, QUANTIZER)
    assert loss is not None
    assert loss(READ)[0] < loss(WHOLE)[0] / 20
    assert loss(Range.of(0.0, 20.0))[0] > loss(WHOLE)[0]


def test_values_on_the_way_count_by_their_scores() -> None:
    model = prepare(detector("joint"))
    anchors, output = AnchorRanges(model), view(detector("joint")).outputs[0]
    boxes, scores = outputs()
    (source,) = (t for t, axis in anchors.axes.items() if axis == -1 and t == view(model.model).maker(output).inputs[0])  # type: ignore[union-attr]
    kept = {output: np.concatenate([boxes, scores], axis=1), source: boxes}
    loss = anchors.loss([source], kept, QUANTIZER)
    assert loss is not None
    near = QUANTIZER.nearest(boxes[:, :, :6].reshape(1, -1).astype(np.float64), READ)
    weights = np.broadcast_to(scores[:, 1:2, :6], (5, 4, 6)).reshape(-1).astype(np.float64)
    error = np.square(boxes[:, :, :6].reshape(-1) - near[0])
    assert loss(READ)[0] == pytest.approx(float(weights @ error / weights.sum()))
    assert loss(READ)[0] < loss(WHOLE)[0] / 20


def test_without_samples_or_boxes_there_is_no_loss() -> None:
    model = prepare(detector("joint"))
    anchors, output = AnchorRanges(model), view(detector("joint")).outputs[0]
    assert anchors.loss([output], {}, QUANTIZER) is None
    boxes, scores = outputs()
    assert anchors.loss([output], {output: np.concatenate([boxes, scores], axis=1)[:0]}, QUANTIZER) is None
