"""Operators that move codes, where only geometry can be wrong; and operators that interpolate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import Draft, samples_of, zero_point
from tflq.devices.conformance.grids.kinds import KINDS
from tflq.devices.conformance.one_operator import T

SHAPE = (2, 3, 4, 5)


def drafts(seed: int) -> Iterator[Draft]:
    """Yield all of them, for every type."""
    rng = np.random.default_rng([seed, 4])
    for kind in KINDS:
        yield from _plain(rng, kind)
        yield from _resized(rng, kind)


def _image(rng: np.random.Generator, kind: str, shape: tuple[int, ...] = SHAPE) -> T:
    return T(kind, shape, float(np.float32(rng.uniform(0.01, 0.1))), zero_point(rng, kind))


def _list(values: Any) -> T:
    array = np.asarray(values, np.int32)
    return T("int32", array.shape, value=array)


def _plain(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    x = _image(rng, kind)

    def like(shape: tuple[int, ...]) -> T:
        return T(kind, shape, x.scale, x.zero_point)

    def made(op: str, aim: str, inputs: tuple[T, ...], shape: tuple[int, ...], options: Any = None) -> Draft:
        return Draft(op, aim, inputs, (like(shape),), samples_of(rng, inputs), options, 1)

    for axis in range(4):
        whole = tuple(n * 2 if i == axis else n for i, n in enumerate(SHAPE))
        options = ("ConcatenationOptions", {"axis": axis, "fused_activation_function": 0})
        yield made("CONCATENATION", f"axis {axis}", (x, like(SHAPE)), whole, options)
    for paddings in ([[0, 0], [1, 2], [3, 0], [0, 0]], [[0, 0], [0, 0], [0, 0], [2, 1]]):
        shape = tuple(n + sum(p) for n, p in zip(SHAPE, paddings, strict=True))
        yield made("PAD", "the zero point as padding", (x, _list(paddings)), shape, ("PadOptions", {}))
    for order in ((0, 2, 1, 3), (3, 0, 1, 2), (0, 3, 1, 2), (3, 2, 1, 0)):
        shape = tuple(SHAPE[i] for i in order)
        yield made("TRANSPOSE", f"order {order}", (x, _list(order)), shape, ("TransposeOptions", {}))
    for shape in ((6, 20), (120,), (1, 2, 60)):
        yield made(
            "RESHAPE", f"to rank {len(shape)}", (x, _list(shape)), shape, ("ReshapeOptions", {"new_shape": shape})
        )
    for begin, size in (((0, 1, 0, 2), (2, 2, 4, 3)), ((1, 0, 3, 0), (1, 3, 1, 5))):
        yield made("SLICE", f"from {begin}", (x, _list(begin), _list(size)), size, ("SliceOptions", {}))
    masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for begin, end, steps in (((0, 0, 0, 0), SHAPE, (1, 2, 3, 1)), ((1, 2, 3, 4), (-3, -4, -5, -6), (-1, -1, -2, -1))):
        span = [range(*slice(b, e, s).indices(n)) for b, e, s, n in zip(begin, end, steps, SHAPE, strict=True)]
        inputs = (x, _list(begin), _list(end), _list(steps))
        yield made("STRIDED_SLICE", f"steps {steps}", inputs, tuple(map(len, span)), ("StridedSliceOptions", masks))


def _resized(rng: np.random.Generator, kind: str) -> Iterator[Draft]:
    for (h, w), mode in product(((2, 3), (6, 8), (5, 9), (1, 1)), range(3)):
        options = {"align_corners": mode == 1, "half_pixel_centers": mode == 2}
        aim = ("corners", "aligned corners", "half-pixel centers")[mode]
        x = _image(rng, kind)
        y = T(kind, (SHAPE[0], h, w, SHAPE[3]), x.scale, x.zero_point)
        inputs = (x, _list((h, w)))
        for op, table in (
            ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
        ):
            yield Draft(op, aim, inputs, (y,), samples_of(rng, inputs), (table, options), 3)
