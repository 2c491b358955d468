"""Figures of two models' outputs as they are read: errors by part, detections in common, and the field's metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.layout import input_size, layout_of
from tflq.errors import InputError
from tflq.model.ir import GraphView
from tflq.quantization.anchors import Reading, Row, reading_of
from tflq.quantization.boxes import overlaps
from tflq.quantization.judge.detections import OVERLAPS, Found, Matches, Objects, boxes_of, found_in, mean_precision
from tflq.quantization.judge.pictures import VOID, Likeness, Overlap
from tflq.quantization.judge.truths import Truth
from tflq.typing import Array

Reals = NDArray[np.float64]

#: Samples from which the way in which outputs are read is found.
_FIRST = 16
#: Sides of pictures in whose pixels detectors write boxes, beside those of the input.
_SIDES = (1.0, 320.0, 416.0, 512.0, 640.0, 768.0, 896.0, 1024.0, 1280.0, 1536.0)
#: Ratios are within this many dB; equal parts have it.
_MOST_RATIO = 300.0
#: Classes of a mask.
_MOST_CLASSES = 4096
POST_PROCESS = "TFLite_Detection_PostProcess"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of both models on labelled samples: of shares (`unit` empty) or in decibels (`dB`)."""

    name: str
    reference: float
    other: float
    unit: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """Figures of outputs: ratios of parts by name, dB, the worst first; detections in common; metrics."""

    ratios: Mapping[str, float] = field(default_factory=dict)
    matches: Matches | None = None
    metrics: tuple[Metric, ...] = ()


class OutputTally:
    """Outputs of two models while samples run."""

    def __init__(self, graph: GraphView) -> None:
        self._graph, self._layout = graph, layout_of(graph)
        self._places = [graph.outputs.index(t) for t in self._layout.tensors if t in graph.outputs]
        self._is_read = len(self._places) == len(self._layout.tensors) and not self._layout.is_plain
        self._waiting: list[tuple[Row, Row]] = []
        self._reading: Reading | None = None
        self._noises, self._signals = np.zeros(0), np.zeros(0)
        self._found: tuple[list[Found], list[Found]] = [], []
        self._right: list[Objects] = []
        self._matches = Matches()
        self._masks, self._likeness = (Overlap(), Overlap()), (Likeness(), Likeness())

    def add(self, ours: Sequence[Reals], theirs: Sequence[Reals], truth: Truth | None) -> None:
        """Count one sample: the real values of all outputs of both models, and what is right.

        Raises:
            InputError: What is right does not fit the outputs.
        """
        if isinstance(truth, Objects):
            self._right.append(truth)
        elif isinstance(truth, np.ndarray):
            self._picture(ours[0], theirs[0], truth)
        if self._post_process is not None:
            self._detect(*(process(outputs, self._post_process) for outputs in (ours, theirs)))
        elif self._is_read:
            pair = tuple(
                [outputs[k].reshape(-1).astype(np.float64) for k in self._places] for outputs in (ours, theirs)
            )
            self._waiting.append((pair[0], pair[1]))
            if self._reading is not None or len(self._waiting) == _FIRST:
                self._flush()

    @property
    def _post_process(self) -> tuple[int, ...] | None:
        """The positions of boxes, classes and scores among the outputs, if that operator makes them."""
        graph = self._graph
        for op in graph.ops:
            if op.name == POST_PROCESS and len(op.outputs) >= 3 and set(op.outputs[:3]) <= set(graph.outputs):
                return tuple(graph.outputs.index(t) for t in op.outputs[:3])
        return None

    def figures(self) -> Figures:
        """Return the figures of all samples so far.

        Raises:
            InputError: Boxes are right, and the outputs hold none that can be read.
        """
        self._flush()
        names = () if self._reading is None else self._reading.names
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -10 * np.log10(np.maximum(self._noises / self._signals, 1e-30)) if len(names) else self._noises
        bounded = np.clip(np.nan_to_num(found, nan=_MOST_RATIO), -_MOST_RATIO, _MOST_RATIO)
        ratios = dict(zip(names, bounded.tolist(), strict=True))
        ratios = dict(sorted(ratios.items(), key=lambda item: item[1]))
        matches = self._matches if self._found[0] else None
        return Figures(ratios, matches, (*self._precisions(), *self._of_pictures()))

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._reading is None:
            self._reading = reading_of(self._layout, [ours for ours, _ in self._waiting])
            self._noises = np.zeros(len(self._reading.names))
            self._signals = np.zeros(len(self._reading.names))
        reading, self._waiting, waiting = self._reading, [], self._waiting
        for ours, theirs in waiting:
            self._noises += reading.noises(ours, theirs)
            self._signals += np.array(reading.signals(ours)) / reading.powers
            if boxes_of(reading) is not None:
                self._detect(found_in(reading, ours), found_in(reading, theirs))

    def _detect(self, ours: Found, theirs: Found) -> None:
        self._found[0].append(ours)
        self._found[1].append(theirs)
        self._matches.add(ours, theirs)

    def _precisions(self) -> list[Metric]:
        if not self._right:
            return []
        if len(self._right) != len(self._found[0]):
            raise InputError(
                "labels hold boxes, but the outputs hold none that can be read: boxes with scores, decoded (offsets "
                "from anchors that are not in the file cannot be)"
            )
        scaled = _scale(self._found, self._right, self._input)
        before, after = (mean_precision(found, self._right) for found in scaled)
        return [Metric("mAP50", before[0], after[0]), Metric("mAP50-95", before[1], after[1])]

    @property
    def _input(self) -> tuple[float, float]:
        width, height = input_size(self._graph)
        return float(max(width, 1)), float(max(height, 1))

    def _picture(self, ours: Reals, theirs: Reals, right: Array) -> None:
        """Count a mask of classes or a picture."""
        if right.ndim == 2:
            highest = _most(right)
            given = [_mask(values, right) for values in (ours, theirs)]
            classes = max(2, *(int(mask.max(initial=0)) + 1 for mask in given), *_classes(ours, right), highest)
            for overlap, mask in zip(self._masks, given, strict=True):
                overlap.add(mask, right.astype(np.int64), _grown(overlap, classes))
            return
        pictures = [_picture(values, right) for values in (ours, theirs)]
        peak = 255.0 if right.dtype.kind in "ui" else 1.0
        unit = 255.0 if pictures[0].max(initial=0.0) > 2.0 else 1.0
        for likeness, picture in zip(self._likeness, pictures, strict=True):
            likeness.add(picture / unit, right.astype(np.float64) / peak)

    def _of_pictures(self) -> list[Metric]:
        masks, likeness = self._masks, self._likeness
        found = [Metric("mIoU", masks[0].mean, masks[1].mean)] if masks[0].either.size else []
        if likeness[0].samples:
            found.append(Metric("PSNR", likeness[0].psnr, likeness[1].psnr, "dB"))
            found.append(Metric("SSIM", likeness[0].ssim, likeness[1].ssim))
        return found


def process(outputs: Sequence[Reals], places: Sequence[int]) -> Found:
    """Return the detections of TFLite_Detection_PostProcess: boxes y, x, y, x [1, N, 4], classes and scores [1, N]."""
    boxes, classes, scores = (outputs[place] for place in places)
    flat = boxes.reshape(-1, 4).T[[1, 0, 3, 2]]
    kept = np.isfinite(flat).all(axis=0) & (scores.reshape(-1) > 0.0)
    order = np.argsort(-scores.reshape(-1)[kept], kind="stable")
    kinds = np.nan_to_num(classes.reshape(-1)[kept][order]).astype(np.int64)
    return Found(flat[:, kept][:, order], scores.reshape(-1)[kept][order], kinds)


def _scale(
    found: tuple[Sequence[Found], Sequence[Found]], right: Sequence[Objects], size: tuple[float, float]
) -> list[list[Found]]:
    """Return detections with boxes as shares of the picture.

    The unit and the order of coordinates are those by which most of the reference's detections are right.
    """
    units = dict.fromkeys([size, *((side, side) for side in _SIDES)])
    ways = list(product(units, ((0, 1, 2, 3), (1, 0, 3, 2))))
    best = max(
        ways, key=lambda way: sum(_right(_in_shares(f, *way).read(), r) for f, r in zip(found[0], right, strict=True))
    )
    return [[_in_shares(f, *best) for f in every] for every in found]


def _in_shares(found: Found, unit: tuple[float, float], order: Sequence[int]) -> Found:
    boxes = found.boxes[list(order)] / np.array([*unit, *unit])[:, None]
    return Found(boxes, found.scores, found.classes)


def _right(found: Found, right: Objects) -> float:
    shares = overlaps(found.boxes, right.boxes)
    return float((shares.max(axis=1, initial=0.0) >= OVERLAPS[0]).sum())


def _mask(values: Reals, right: Array) -> NDArray[np.int64]:
    """Return the class of each pixel: the values themselves, or the greatest along the axis that `right` lacks."""
    shape = tuple(n for n in values.shape if n != 1)
    flat = np.nan_to_num(values).reshape(shape or (1,))
    wanted = tuple(n for n in right.shape if n != 1)
    if shape == wanted:
        codes: NDArray[np.int64] = np.clip(flat, 0, _MOST_CLASSES - 1).astype(np.int64)
        return codes.reshape(right.shape)
    for axis in range(len(shape) - 1, -1, -1):
        if shape[:axis] + shape[axis + 1 :] == wanted:
            best: NDArray[np.int64] = flat.argmax(axis=axis).astype(np.int64)
            return best.reshape(right.shape)
    raise InputError("masks do not fit the output", expected=list(values.shape), got=list(right.shape))


def _classes(values: Reals, right: Array) -> tuple[int, ...]:
    return (min(values.size // right.size, _MOST_CLASSES),) if right.size else ()


def _most(right: Array) -> int:
    known = right[right != VOID]
    if right.dtype.kind not in "ui" or known.min(initial=0) < 0 or known.max(initial=0) >= _MOST_CLASSES:
        raise InputError("masks hold no classes", expected=f"whole numbers below {_MOST_CLASSES}", got=str(right.dtype))
    return int(known.max(initial=0)) + 1


def _grown(overlap: Overlap, classes: int) -> int:
    """Return the number of classes; counts so far get zeros for new ones."""
    missing = classes - overlap.both.size
    if overlap.both.size and missing > 0:
        overlap.both, overlap.either = (np.pad(counts, (0, missing)) for counts in (overlap.both, overlap.either))
    return max(classes, overlap.both.size)


def _picture(values: Reals, right: Array) -> Reals:
    """Return an output as a picture [H, W, C]."""
    if right.ndim != 3 or right.dtype.kind not in "fui" or not np.isfinite(right.astype(np.float64)).all():
        raise InputError("labels hold no finite pictures", expected="[N, H, W, C]", got=list(right.shape))
    shape = values.shape[1:] if len(values.shape) == 4 else values.shape
    if shape == right.shape:
        return values.reshape(right.shape)
    if shape == (right.shape[2], *right.shape[:2]):
        return np.moveaxis(values.reshape(shape), 0, 2)
    raise InputError("pictures do not fit the output", expected=list(values.shape), got=list(right.shape))
