"""Figures of two models' outputs as they are read, against labels.

Labels of samples: a class, objects with boxes, a mask of classes, or a picture; read from files.

Boxes are shares of the picture that the model sees, 0 to 1. Files: `.npy`, `.npz` and text of classes; COCO's JSON of
instances; a folder of YOLO texts, one for each picture; an `.npz` with `boxes` and `classes`, masks or pictures.

Figures of two models' outputs as they are read: errors by part, detections in common, and the field's metrics.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inputs.prepare import centred, image_paths, picture_size
from tflq.comparison.inspection.layout import input_size, layout_of
from tflq.errors import FileAccessError, InputError
from tflq.model.ir import GraphView, Model, view
from tflq.model.storage.arrays import opened
from tflq.model.storage.kinds import open_file
from tflq.quantization.anchors import Reading, Row, overlaps, reading_of
from tflq.quantization.judge.detections import (
    OVERLAPS,
    VOID,
    FoundBoxes,
    Likeness,
    Matches,
    Objects,
    Overlap,
    boxes_of,
    found_in,
    mean_precision,
)
from tflq.quantization.samples import read_labels
from tflq.typing import Array, Reals

#: The label of one sample: a class, objects, or an array [H, W] of classes or [H, W, C] of colours.
Truth: TypeAlias = "int | Objects | Array"

#: Bytes of a document or text that are read.
_BYTES, _TEXT = 512 << 20, 1 << 20
#: An object is dropped if a cut leaves less than this share of it.
_LEFT = 0.3


@dataclass(frozen=True, slots=True)
class Frame:
    """How the model sees a picture: its file's stem, its size, and left, top, right and bottom of what is cut out."""

    name: str
    size: tuple[int, int]
    cut: tuple[int, int, int, int]


def read_truths(
    path: str | os.PathLike[str], size: tuple[int, int], frames: Sequence[Frame] | None = None
) -> list[Truth]:
    """Return what is right for each sample.

    `size` is the width and height of the model's input; `frames` describes the pictures of a folder, by which files are
    matched. Without it, pictures count in the order of the document, or of the names of texts.

    Raises:
        FileAccessError: A file cannot be read.
        InputError: It does not hold labels, or not those of a picture.
    """
    source = Path(path)
    if source.is_dir():
        return [*_from_texts(source, frames)]
    if source.suffix.lower() == ".json":
        return [*_from_coco(source, frames)]
    if source.suffix == ".npz":
        with opened(source) as arrays:
            if "boxes" in arrays:
                return [*_from_arrays(arrays, size)]
            if "y" in arrays and arrays["y"].ndim > 2:
                return list(arrays["y"])
    return [int(label) for label in read_labels(source)]


def labels_of_files(
    path: str | os.PathLike[str] | None, data: str | os.PathLike[str], model: Model
) -> list[Truth] | None:
    """Return the labels in a file or folder for the samples at `data`, which `model` takes; None without a path.

    Raises:
        FileAccessError, InputError: See `read_truths`.
        OptionError: Pictures have to be measured, and Pillow is not installed.
    """
    if path is None:
        return None
    size = input_size(view(model))
    source, pictures = Path(path), image_paths(Path(data))
    of_pictures = source.is_dir() or source.suffix.lower() == ".json"
    frames = [_frame(picture, size) for picture in pictures] if pictures and of_pictures else None
    return read_truths(path, size, frames)


def _frame(picture: Path, size: tuple[int, int]) -> Frame:
    wide, high = picture_size(picture)
    return Frame(picture.stem, (wide, high), centred(wide, high, *size))


def truths_from(labels: Iterable[Any]) -> list[Truth]:
    """Return labels of Python callers: classes as int; objects and arrays stay."""
    return [one if isinstance(one, Objects) or np.ndim(one) > 0 else int(one) for one in labels]


def _from_arrays(arrays: Mapping[str, Array], size: tuple[int, int]) -> Sequence[Objects]:
    """Return the objects of stacked boxes [N, K, 4], two corners in pixels or shares, with classes [N, K]."""
    boxes, classes = arrays["boxes"], arrays.get("classes")
    if classes is None or boxes.shape != (*classes.shape, 4) or classes.ndim != 2 or boxes.dtype.kind not in "fiu":
        raise InputError("boxes without classes", expected="boxes [N, K, 4], classes [N, K]", got=list(boxes.shape))
    valid = np.asarray(arrays.get("valid", np.ones(classes.shape, bool)), bool)
    if valid.shape != classes.shape or not np.isfinite(boxes[valid]).all():
        raise InputError("boxes are not finite, or `valid` has another shape than `classes`")
    largest = float(boxes[valid].max(initial=0.0))
    unit = np.array([*size, *size], np.float64) if largest > 1.5 else np.ones(4)
    return [Objects((b[v] / unit).T, c[v].astype(np.int64)) for b, c, v in zip(boxes, classes, valid, strict=True)]


def _from_texts(folder: Path, frames: Sequence[Frame] | None) -> Sequence[Objects]:
    """Return the objects of YOLO texts: a line for each, with class, centre and size in shares of the picture.

    A picture without a text has no objects.
    """
    texts = {p.stem: p for p in sorted(folder.iterdir()) if p.suffix == ".txt" and p.stem not in ("classes", "labels")}
    if not texts:
        raise InputError("holds no .txt files", name=str(folder))
    if frames is None:
        return [_from_text(path) for path in texts.values()]
    if not any(frame.name in texts for frame in frames):
        raise InputError("no text has the name of a picture", name=str(folder), expected=f"{frames[0].name}.txt")
    return [
        _cut(_from_text(texts[frame.name]), frame) if frame.name in texts else _cut(_none(), frame) for frame in frames
    ]


def _from_text(path: Path) -> Objects:
    rows = []
    for number, line in enumerate(_read(path, _TEXT).decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            row = [float(word) for word in words[:5]]
        except ValueError:
            row = []
        if len(row) < 5 or not np.isfinite(row).all() or row[0] < 0 or row[0] != int(row[0]):
            raise InputError(f"line {number}: expected a class, a centre and a size", name=str(path), got=line[:60])
        rows.append(row)
    table = np.array(rows, np.float64).reshape(-1, 5)
    centre, half = table[:, 1:3].T, table[:, 3:5].T / 2
    return Objects(np.concatenate([centre - half, centre + half]), table[:, 0].astype(np.int64))


def _from_coco(path: Path, frames: Sequence[Frame] | None) -> Sequence[Objects]:
    """Return the objects of a document of instances; classes are numbered in the order of the categories' ids."""
    data = _read(path, _BYTES)
    try:
        document = json.loads(data)
        pictures = {image["id"]: image for image in document["images"]}
        kinds = {kind: k for k, kind in enumerate(sorted(int(c["id"]) for c in document["categories"]))}
        boxes: dict[Any, list[list[float]]] = {number: [] for number in pictures}
        for entry in document["annotations"]:
            if not entry.get("iscrowd") and entry["image_id"] in boxes:
                left, top, wide, high = (float(number) for number in entry["bbox"])
                kind = float(kinds[int(entry["category_id"])])
                boxes[entry["image_id"]].append([left, top, left + wide, top + high, kind])
        found = {number: _truths_scale(boxes[number], image, path) for number, image in pictures.items()}
        names = {Path(str(image["file_name"])).stem: number for number, image in pictures.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"is no document of COCO instances ({type(error).__name__}: {error})"
        raise InputError(reason[:200], name=str(path)) from error
    if frames is None:
        return list(found.values())
    missing = next((frame.name for frame in frames if frame.name not in names), None)
    if missing is not None:
        raise InputError("has no picture of that name", name=str(path), expected=missing)
    return [_cut(found[names[frame.name]], frame) for frame in frames]


def _truths_scale(boxes: Sequence[Sequence[float]], image: Mapping[str, Any], path: Path) -> Objects:
    table = np.array(boxes, np.float64).reshape(-1, 5)
    size = np.array([float(image["width"]), float(image["height"])] * 2)
    if not (np.isfinite(table).all() and np.isfinite(size).all() and size.min() > 0):
        raise InputError("holds boxes or sizes that are not finite", name=str(path))
    return Objects((table[:, :4] / size).T, table[:, 4].astype(np.int64))


def _none() -> Objects:
    return Objects(np.zeros((4, 0)), np.zeros(0, np.int64))


def _cut(objects: Objects, frame: Frame) -> Objects:
    """Return the objects of a picture as shares of the part that is cut out; those that are mostly outside are gone."""
    whole, part = np.array([*frame.size] * 2, np.float64)[:, None], np.array(frame.cut, np.float64)
    start, extent = np.tile(part[:2], 2)[:, None], np.tile(part[2:] - part[:2], 2)[:, None]
    moved = (objects.boxes * whole - start) / extent
    inside = np.clip(moved, 0.0, 1.0)
    areas = [np.clip(b[2:] - b[:2], 0.0, None).prod(axis=0) for b in (moved, inside)]
    kept = areas[1] >= _LEFT * np.maximum(areas[0], 1e-12)
    return Objects(inside[:, kept], objects.classes[kept])


def _read(path: Path, limit: int) -> bytes:
    try:
        with open_file(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise error if isinstance(error, FileAccessError) else FileAccessError(path, str(error)) from error
    if len(data) > limit:
        raise InputError(f"is larger than {limit:,} bytes", name=str(path))
    return data


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
class OutputFigures:
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
        self._found: tuple[list[FoundBoxes], list[FoundBoxes]] = [], []
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

    def figures(self) -> OutputFigures:
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
        return OutputFigures(ratios, matches, (*self._precisions(), *self._of_pictures()))

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

    def _detect(self, ours: FoundBoxes, theirs: FoundBoxes) -> None:
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


def process(outputs: Sequence[Reals], places: Sequence[int]) -> FoundBoxes:
    """Return the detections of TFLite_Detection_PostProcess: boxes y, x, y, x [1, N, 4], classes and scores [1, N]."""
    boxes, classes, scores = (outputs[place] for place in places)
    flat = boxes.reshape(-1, 4).T[[1, 0, 3, 2]]
    kept = np.isfinite(flat).all(axis=0) & (scores.reshape(-1) > 0.0)
    order = np.argsort(-scores.reshape(-1)[kept], kind="stable")
    kinds = np.nan_to_num(classes.reshape(-1)[kept][order]).astype(np.int64)
    return FoundBoxes(flat[:, kept][:, order], scores.reshape(-1)[kept][order], kinds)


def _scale(
    found: tuple[Sequence[FoundBoxes], Sequence[FoundBoxes]], right: Sequence[Objects], size: tuple[float, float]
) -> list[list[FoundBoxes]]:
    """Return detections with boxes as shares of the picture.

    The unit and the order of coordinates are those by which most of the reference's detections are right.
    """
    units = dict.fromkeys([size, *((side, side) for side in _SIDES)])
    ways = list(product(units, ((0, 1, 2, 3), (1, 0, 3, 2))))
    best = max(
        ways, key=lambda way: sum(_right(_in_shares(f, *way).read(), r) for f, r in zip(found[0], right, strict=True))
    )
    return [[_in_shares(f, *best) for f in every] for every in found]


def _in_shares(found: FoundBoxes, unit: tuple[float, float], order: Sequence[int]) -> FoundBoxes:
    boxes = found.boxes[list(order)] / np.array([*unit, *unit])[:, None]
    return FoundBoxes(boxes, found.scores, found.classes)


def _right(found: FoundBoxes, right: Objects) -> float:
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
