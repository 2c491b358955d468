"""Operators on images and boxes."""

from __future__ import annotations

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import Draw
from opfuzz.families.moving import like
from opfuzz.one_operator import T


def resize(draw: Draw, op: str) -> Case:
    """Draw RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR, with each placement of pixels."""
    kind = str(draw.types(op)[0][0])
    n, h, w, c = draw.int(1, 2), draw.extent(1, 9), draw.extent(1, 9), draw.extent(1, 7)
    size = [draw.extent(1, 14), draw.extent(1, 14)] if draw.chance(0.8) else [h * 2, w * 2]
    x = draw.tensor(kind, (n, h, w, c))
    listed, value = draw.listed(size)
    half = draw.chance(0.4)
    options = {"align_corners": not half and draw.chance(0.4), "half_pixel_centers": half}
    name = "ResizeBilinearOptions" if op == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    return draw.case(
        op, [x, listed], [like(x, (n, *size, c))], (name, options), given=lambda t: value if t is listed else None
    )


def choose_boxes(draw: Draw, op: str) -> Case:
    """Draw NON_MAX_SUPPRESSION_V4 or _V5."""
    count = draw.extent(1, 20)
    soft = op.endswith("V5") and draw.chance(0.8)
    boxes, scores = T("float32", (count, 4)), T("float32", (count,))
    most, number = draw.listed(draw.int(0 if draw.chance(0.05) else 1, 12))
    rest = [draw.listed(v, "float32", 0.5) for v in (draw.real(0, 1), draw.pick([0.0, 0.2, -1.0]))]
    if op.endswith("V5"):
        rest.append(draw.listed(draw.real(0, 1) if soft else 0.0, "float32", 0.5))
    known = {id(tensor): value for tensor, value in [(most, number), *rest]}

    def given(tensor: T) -> Array:
        if tensor is boxes:
            corner, size = draw.rng.uniform(0, 1, (2, count, 2))
            return np.concatenate([corner, corner + size * 0.7], 1).astype(np.float32)
        if tensor is scores:
            return np.round(draw.rng.uniform(0, 1, count), 1).astype(np.float32)
        return known[id(tensor)]

    chosen = int(number)
    outputs = [T("int32", (chosen,)), T("int32", ())]
    if op.endswith("V5"):
        outputs.insert(1, T("float32", (chosen,)))
    inputs = [boxes, scores, most, *(tensor for tensor, _ in rest)]
    name = "NonMaxSuppressionV4Options" if op.endswith("V4") else "NonMaxSuppressionV5Options"
    return draw.case(op, inputs, outputs, (name, {}), given=given)


def neighbours(draw: Draw, op: str) -> Case:
    """Draw LOCAL_RESPONSE_NORMALIZATION over channels."""
    x = T("float32", draw.shape(4, 4))
    options = {
        "radius": draw.int(0, 5),
        "bias": draw.real(0.5, 2),
        "alpha": draw.real(0.001, 1),
        "beta": draw.pick([0.5, 1.0, 0.75, draw.real(0.1, 2)]),
    }
    return draw.case(op, [x], [x], ("LocalResponseNormalizationOptions", options))


def spectrum(draw: Draw, op: str) -> Case:
    """Draw RFFT2D of sizes that are powers of two; images are padded or cut."""
    shape = (*draw.shape(0, 2, 4), draw.extent(1, 9), draw.extent(1, 9))
    size = [draw.pick([1, 2, 4, 8, 16]), draw.pick([2, 4, 8, 16])]
    listed, value = draw.listed(size)
    x = T("float32", shape)
    y = T("complex64", (*shape[:-2], size[0], size[1] // 2 + 1))

    def given(tensor: T) -> Array:
        return value if tensor is listed else draw.floats(shape, 1.0, 0.0)

    return draw.case(op, [x, listed], [y], ("Rfft2dOptions", {}), given=given)


SPECS = {
    "LOCAL_RESPONSE_NORMALIZATION": neighbours,
    "RFFT2D": spectrum,
    "RESIZE_BILINEAR": resize,
    "RESIZE_NEAREST_NEIGHBOR": resize,
    "NON_MAX_SUPPRESSION_V4": choose_boxes,
    "NON_MAX_SUPPRESSION_V5": choose_boxes,
}
