"""One operator on a thinner image: most rows and columns removed, the results of the others unchanged.

Pixels at the image's borders stay at the borders, so padding has the same effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.inspection.parts import parts_of
from tflq.engine.api.part import Part
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.typing import Array

Spans = list[tuple[int, int]]

#: Results with fewer elements are not thinned.
_WORTH = 1 << 14
#: Number of rows, and columns, that are kept at each border and around one place, in outputs.
_KEPT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One axis of an image: the kept rows, and the output rows that read only these.

    `outputs` are those output rows, `now` their numbers on the thinner image.
    """

    rows: NDArray[np.int64]
    outputs: NDArray[np.int64]
    now: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Thinner:
    """The operator alone on the thinner image. `got` of `alone` is whole rows and columns of the dump's."""

    alone: Part
    down: Axis
    across: Axis

    def of(self, values: Mapping[int, Array]) -> dict[int, Array]:
        """Return the results that equal the whole image's."""
        return {t: values[t][:, self.down.now][:, :, self.across.now] for t in self.alone.got if t in values}


def thinned(alone: Part, profile: Profile, base: Mapping[int, Array]) -> Thinner | None:
    """Return the operator on a thinner image, checked against the profile's whole results, `base`; else None."""
    window = _window(alone, profile)
    if window is None:
        return None
    ((tensor, dumped),) = alone.got.items()
    apart = np.argwhere(unequal(base[tensor], dumped))
    place = apart[len(apart) // 2] if len(apart) else np.zeros(4, np.int64)
    w = window
    reach = ((w.kernel_h - 1) * w.dilation_h + 1, (w.kernel_w - 1) * w.dilation_w + 1)
    down = _axis(w.height, w.out_h, w.stride_h, w.pad_top, reach[0], int(place[1]))
    across = _axis(w.width, w.out_w, w.stride_w, w.pad_left, reach[1], int(place[2]))
    images = {p: x[:, down.rows][:, :, across.rows] for p, x in alone.inputs.items()}
    got = {tensor: dumped[:, down.outputs][:, :, across.outputs]}
    thinner = Thinner(replace(alone, inputs=images, got=got), down, across)
    try:
        computed = thinner.of(thinner.alone.run(thinner.alone.plan(profile)))
    except (TflqError, IndexError):
        return None
    right = base[tensor][:, down.outputs][:, :, across.outputs]
    return thinner if got[tensor].size and np.array_equal(computed[tensor], right) else None


def _window(alone: Part, profile: Profile) -> Window | None:
    """Return the operator's window over its images; an element-wise operator has a window of one tap."""
    images = list(alone.inputs.values())
    if len(alone.got) != 1 or not images or any(x.ndim != 4 for x in images):
        return None
    (dumped,) = alone.got.values()
    if dumped.ndim != 4 or dumped.size < _WORTH or any(x.shape[:3] != images[0].shape[:3] for x in images):
        return None
    prepared = alone.plan(profile).steps[0].prepared
    windows = parts_of(None if prepared is None else prepared.data, Window)
    height, width = images[0].shape[1:3]
    window = next((part.value for part in windows), Window.of_one_tap(height, width))
    over_image = (window.height, window.width) == (height, width)
    return window if over_image and (window.out_h, window.out_w) == dumped.shape[1:3] else None


def _axis(size: int, out: int, stride: int, before: int, reach: int, place: int) -> Axis:
    """Keep the rows that the first and last outputs see, and those around `place`; gaps are multiples of the stride.

    As many rows as a window has stay around each, so that a window can be displaced by its padding.
    """
    margin = reach if reach > 1 else 0
    kept = np.zeros(out, bool)
    for at in (0, place, out - 1):
        kept[max(0, at - _KEPT) : at + _KEPT + 1] = True
    rows = np.zeros(size, bool)
    for y in np.flatnonzero(kept).tolist():
        rows[max(0, y * stride - before - margin) : max(0, y * stride - before + reach + margin)] = True
    spans = _align(_spans(rows), size, stride)
    starts = np.array([a for a, _ in spans])
    gone = np.cumsum(starts - np.array([0, *(b for _, b in spans[:-1])]))  # rows removed before each span
    kept_outputs, now = [], []
    for y in range(out):
        first, last = y * stride - before - margin, y * stride - before + reach + margin
        for (a, b), lost in zip(spans, gone, strict=True):
            if (a <= first or a == 0) and (last <= b or b == size):
                kept_outputs.append(y)
                now.append(y - int(lost) // stride)
                break
    return Axis(np.concatenate([np.arange(a, b) for a, b in spans]), np.array(kept_outputs, int), np.array(now, int))


def _spans(rows: NDArray[np.bool_]) -> Spans:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _align(spans: Spans, size: int, stride: int) -> Spans:
    """Extend the spans to the first and last row; shrink gaps to multiples of the stride."""
    spans = [(0, spans[0][1]), *spans[1:]]
    spans[-1] = (spans[-1][0], size)
    joined: Spans = [spans[0]]
    for a, b in spans[1:]:
        gap = (a - joined[-1][1]) // stride * stride
        if gap <= 0:
            joined[-1] = (joined[-1][0], b)
        else:
            joined.append((joined[-1][1] + gap, b))
    return joined
