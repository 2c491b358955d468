"""Labels of samples: a class, objects with boxes, a mask of classes, or a picture; read from files.

Boxes are shares of the picture that the model sees, 0 to 1. Files: `.npy`, `.npz` and text of classes; COCO's JSON of
instances; a folder of YOLO texts, one for each picture; an `.npz` with `boxes` and `classes`, masks or pictures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.inspection.layout import input_size
from tflq.comparison.verification.pictures import centred, picture_size
from tflq.comparison.verification.preparation import image_paths
from tflq.errors import FileAccessError, InputError
from tflq.model.ir import Model, view
from tflq.model.storage.archive import opened
from tflq.model.storage.reading import open_file
from tflq.quantization.calibration.labels import read_labels
from tflq.quantization.judge.detections import Objects
from tflq.typing import Array

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
        found = {number: _scale(boxes[number], image, path) for number, image in pictures.items()}
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


def _scale(boxes: Sequence[Sequence[float]], image: Mapping[str, Any], path: Path) -> Objects:
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
