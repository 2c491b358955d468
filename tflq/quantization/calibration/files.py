"""Samples in files: an archive, an array, or a folder of arrays or images."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tflq.comparison.verification.inputs import numbered, only_array
from tflq.comparison.verification.pictures import SUFFIXES, read_image
from tflq.errors import CalibrationError, FileAccessError, TflqError
from tflq.model.ir import TensorType
from tflq.model.storage import archive as archives
from tflq.model.storage.arrays import load_array, load_rows
from tflq.quantization.calibration.names import InputNames
from tflq.typing import Array


def opened(source: str | os.PathLike[str], names: InputNames, *, bgr: bool = False) -> Iterator[tuple[Array, ...]]:
    """Return the samples of a file or a folder, arrays in input order.

    An `.npz` holds stacked arrays named after the inputs, or `s<k>_in<i>` for input i of sample k; for a model with one
    input also the only array, or the one named `x`. An `.npy` holds the stacked samples of one input. A folder holds
    one sample per file, in the order of the file names: images, `.npy` for a model of one input, or `.npz`.
    """
    path = Path(source)
    if path.is_dir():
        return _from_folder(path, names, bgr)
    if not path.is_file():
        raise FileAccessError(path, "there is no such file")
    if path.suffix == ".npz":
        return _from_archive(path, names)
    if path.suffix == ".npy":
        names.check_count(1, None)
        return ((row,) for row in load_rows(path))
    raise CalibrationError("kind of file", name=str(path), expected=".npz, .npy or a folder", got=path.suffix)


def _from_archive(path: Path, names: InputNames) -> Iterator[tuple[Array, ...]]:
    with archives.opened(path, streamed=True) as archive:
        samples = numbered(archive)
        if samples:
            yield from (_number(archive, k, names) for k in samples)
        else:
            stacked = [archive.rows(name) for name in _stack(tuple(archive), names)]
            yield from _side_by_side(stacked, archive.source)


def _number(archive: archives.Archive, sample: int, names: InputNames) -> tuple[Array, ...]:
    expected = [f"s{sample}_in{i}" for i in range(len(names.specs))]
    missing = next((name for name in expected if name not in archive), None)
    if missing is not None:
        raise CalibrationError(f"the archive has no {missing}", sample=sample, name=archive.source)
    return tuple(archive[name] for name in expected)


def _stack(present: tuple[str, ...], names: InputNames) -> tuple[str, ...]:
    """Return the names of the arrays that hold the samples, in input order."""
    name = only_array(present, [name for name in names.positions if isinstance(name, str)])
    return (name,) if len(names.specs) == 1 and name is not None else names.order(present)


def _side_by_side(stacked: Sequence[Iterator[Array]], source: str) -> Iterator[tuple[Array, ...]]:
    """Yield the rows of several arrays, all of the same length."""
    try:
        yield from zip(*stacked, strict=True)
    except TflqError:
        raise
    except ValueError as error:
        raise CalibrationError("inputs have different numbers of samples", name=source) from error


def _from_folder(folder: Path, names: InputNames, bgr: bool) -> Iterator[tuple[Array, ...]]:
    readers: dict[str, Callable[[Path, InputNames, int], tuple[Array, ...]]]
    readers = {".npy": _array, ".npz": _arrays, **dict.fromkeys(SUFFIXES, partial(_image, bgr=bgr))}
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in readers and p.is_file())
    for number, path in enumerate(paths):
        yield readers[path.suffix.lower()](path, names, number)


def _array(path: Path, names: InputNames, number: int) -> tuple[Array, ...]:
    names.check_count(1, number)
    return (load_array(path),)


def _arrays(path: Path, names: InputNames, number: int) -> tuple[Array, ...]:
    with archives.opened(path) as archive:
        return names.ordered(archive, number)


def _image(path: Path, names: InputNames, number: int, *, bgr: bool) -> tuple[Array, ...]:
    names.check_count(1, number)
    spec = names.specs[0]
    shape = spec.shape_signature or spec.shape
    if len(shape) != 4 or min(shape[1:]) < 1:
        name = spec.name or "input"
        raise CalibrationError("takes no image", sample=number, name=name, expected="[1, H, W, C]", got=list(shape))
    height, width, channels = shape[1:]
    image = read_image(path, height, width, channels, bgr=bgr)
    return (image.astype(np.float32) if spec.type == TensorType.FLOAT32 else image,)
