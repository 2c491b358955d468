"""TFLite_Detection_PostProcess against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from support.graphs import Graph, Op, build, litert
from support.graphs import tflq as run_here
from support.single_op import Array, T
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError


def model(boxes: int, classes: int, background: int, types: tuple[str, str], width: int = 4, **more: Any) -> bytes:
    options = {
        "max_detections": 10,
        "max_classes_per_detection": 1,
        "num_classes": classes,
        "nms_score_threshold": 0.2,
        "nms_iou_threshold": 0.5,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        **more,
    }
    count = options["max_detections"] * options["max_classes_per_detection"]
    box, score = types
    tensors = [
        T(box, (1, boxes, width), 0.11, 120),
        T(score, (1, boxes, classes + background), 1 / 255, 3),
        T(box, (boxes, 4), 0.004, 9),
        T("float32", (1, count, 4)),
        T("float32", (1, count)),
        T("float32", (1, count)),
        T("float32", (1,)),
    ]
    op = Op("TFLite_Detection_PostProcess", (0, 1, 2), (3, 4, 5, 6), custom=bytes(flexbuffers.Dumps(options)))
    return build(Graph(tensors, (0, 1, 2), (3, 4, 5, 6), [op]))


def inputs(
    rng: np.random.Generator, boxes: int, classes: int, types: tuple[str, str], width: int, coarse: bool
) -> list[Array]:
    if types[0] == "uint8":
        encodings = rng.integers(90, 150, (1, boxes, width)).astype(np.uint8)
        anchors = rng.integers(10, 256, (boxes, 4)).astype(np.uint8)
    else:
        encodings = rng.normal(0, 1, (1, boxes, width)).astype(np.float32)
        anchors = rng.uniform(0.05, 0.9, (boxes, 4)).astype(np.float32)
    scores = rng.uniform(0, 1, (1, boxes, classes))
    if coarse:
        scores = np.round(scores, 1)
    return [encodings, (scores * 255).astype(np.uint8) if types[1] == "uint8" else scores.astype(np.float32), anchors]


@pytest.mark.slow
@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("types", [("float32", "float32"), ("uint8", "uint8"), ("float32", "uint8")])
@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("background", [0, 1])
@pytest.mark.parametrize("each", [1, 2, 4])
def test_against_litert(types: tuple[str, str], regular: bool, background: int, each: int) -> None:
    rng = np.random.default_rng(each + background)
    for boxes, classes, width in [(1, 1, 4), (5, 3, 4), (40, 6, 5), (100, 17, 4)]:
        file = model(
            boxes,
            classes,
            background,
            types,
            width,
            use_regular_nms=regular,
            detections_per_class=7,
            max_classes_per_detection=each,
        )
        runs = [inputs(rng, boxes, classes + background, types, width, coarse) for coarse in (False, True, True)]
        compare(file, runs, 1 if regular else each, 1 if regular else min(each, classes))


def compare(file: bytes, runs: list[list[Array]], each: int, written: int) -> None:
    """Everything that LiteRT writes: the first `written` classes of every detection that it counts."""
    for got, want in zip(run_here(file, runs), litert(file, runs), strict=True):
        assert got[3] == want[3]
        kept = (np.arange(got[1].size) < int(want[3][0]) * each) & (np.arange(got[1].size) % each < written)
        for ours, theirs in zip(got[:3], want[:3], strict=True):
            assert ours.shape == theirs.shape
            np.testing.assert_array_equal(ours[0][kept].view(np.uint32), theirs[0][kept].view(np.uint32))
            assert not ours[0][~kept].any()


def test_thresholds() -> None:
    rng = np.random.default_rng(3)
    types = ("float32", "float32")
    for score, iou, most in [(0.0, 0.1, 3), (0.9, 1.0, 50), (-1.0, 0.6, 30), (2.0, 0.5, 4)]:
        for regular in (False, True):
            file = model(
                60,
                4,
                1,
                types,
                nms_score_threshold=score,
                nms_iou_threshold=iou,
                max_detections=most,
                use_regular_nms=regular,
            )
            compare(file, [inputs(rng, 60, 5, types, 4, True) for _ in range(2)], 1, 1)


def test_refusals() -> None:
    types = ("float32", "float32")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("nms_iou", {"nms_iou_threshold": 1.5}),
        ("num_classes", {"num_classes": 0}),
    ]
    for match, more in wrong:
        with pytest.raises(ModelError, match=match):
            Interpreter(model_content=model(3, 2, 1, types, **more)).allocate_tensors()
