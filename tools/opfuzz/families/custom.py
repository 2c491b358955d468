"""Custom operators, and those of StableHLO that read a subgraph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import Draw
from opfuzz.one_operator import T


def spectrogram(draw: Draw, op: str) -> Case:
    """Draw AudioSpectrogram of one or two channels."""
    size, stride = draw.int(2, 70), draw.int(1, 40)
    x = T("float32", (size + stride * draw.int(0, 3), draw.int(1, 2)))
    options = {"window_size": size, "stride": stride, "magnitude_squared": draw.chance(0.5)}
    return draw.case(op, [x], [T("float32", ())], ("", options), version=1)


def mfcc(draw: Draw, op: str) -> Case:
    """Draw Mfcc of a few frames."""
    filters = draw.int(1, 40)
    x = T("float32", (draw.int(1, 2), draw.int(1, 3), draw.int(2, 130)))
    low = draw.int(0, 400)
    options = {
        "upper_frequency_limit": low + draw.int(1, 4000),
        "lower_frequency_limit": low,
        "filterbank_channel_count": filters,
        "dct_coefficient_count": draw.int(1, filters),
    }
    rate, value = draw.listed([draw.pick([16000, 8000, 7999, 44100, 3])], "int32", 0.7)
    y = T("float32", (*x.shape[:2], options["dct_coefficient_count"]))
    return draw.case(op, [x, rate], [y], ("", options), version=1, given=lambda t: value if t is rate else None)


def detections(draw: Draw, op: str) -> Case:
    """Draw TFLite_Detection_PostProcess with either way of suppression."""
    boxes, classes, background, each = draw.int(1, 30), draw.int(1, 6), draw.int(0, 1), draw.int(1, 4)
    options = {
        "max_detections": draw.int(0, 12),
        "max_classes_per_detection": each,
        "num_classes": classes,
        "nms_score_threshold": draw.real(0, 0.6),
        "nms_iou_threshold": draw.real(0.1, 1),
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
        "use_regular_nms": draw.chance(0.5),
        "detections_per_class": draw.int(1, 9),
    }
    encodings, scores = T("float32", (1, boxes, 4)), T("float32", (1, boxes, classes + background))
    anchors = T("float32", (boxes, 4))
    count = options["max_detections"] * each
    outputs = [T("float32", shape) for shape in ((1, count, 4), (1, count), (1, count), (1,))]

    def given(tensor: T) -> Array:
        values = draw.rng.uniform(0.05, 0.9, tensor.shape)
        return np.asarray(np.round(values, 1) if draw.chance(0.5) else values, np.float32)

    return draw.case(op, [encodings, scores, anchors], outputs, ("", options), given=given, version=1)


def scatter(draw: Draw, op: str) -> Case:
    """Draw STABLEHLO_SCATTER of rows."""
    (kind, of, _), _ = draw.types(op)
    x = T(str(kind), draw.shape(1, 3, 60))
    count, rank = draw.int(1, 6), len(x.shape)
    indices, updates = T(str(of), (count, 1)), T(str(kind), (count, *x.shape[1:]))
    options = {
        "update_window_dims": np.arange(1, rank),
        "inserted_window_dims": np.array([0]),
        "scatter_dims_to_operand_dims": np.array([0]),
        "index_vector_dim": 1,
        "update_computation_subgraph_index": 1,
    }
    case = draw.case(
        op,
        [x, indices, updates],
        [x],
        ("StablehloScatterOptions", options),
        version=1,
        given=lambda t: draw.rng.integers(-1, x.shape[0] + 1, t.shape).astype(of) if t is indices else None,
    )
    bodies = ["STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"]
    return replace(case, body=draw.pick(bodies))


SPECS = {
    "AudioSpectrogram": spectrogram,
    "Mfcc": mfcc,
    "TFLite_Detection_PostProcess": detections,
    "STABLEHLO_SCATTER": scatter,
}
