"""Samples in files: an archive, an array, a folder of either or of images."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import CalibrationError, FileAccessError
from tflq.ir import TensorType
from tflq.quantization.calibration.archives import names_in_npz, rows_of_npy, rows_of_npz
from tflq.quantization.calibration.names import InputNames
from tflq.quantization.calibration.pictures import SUFFIXES, read_image
from tflq.verification.inputs import load_npy, load_npz, numbered

Array = NDArray[Any]


def opened(source: str | os.PathLike[str], names: InputNames) -> Iterator[tuple[Array, ...]]:
    """The samples of a file or a folder, arrays in input order.

    An `.npz` holds stacked arrays named after the inputs, or `s<k>_in<i>` for input i of sample k; for a model of one
    input also the only array of any name, or the one named `x`. An `.npy` holds the stacked samples of one input. A
    folder holds one sample a file, in the order of their names: images, `.npy` for a model of one input, or `.npz`.
    """
    path = Path(source)
    if path.is_dir():
        return _from_folder(path, names)
    if not path.is_file():
        raise FileAccessError(path, "there is no such file")
    if path.suffix == ".npz":
        return _from_archive(path, names)
    if path.suffix == ".npy":
        names.check_count(1, None)
        return ((row,) for row in rows_of_npy(path))
    raise CalibrationError("kind of file", name=str(path), expected=".npz, .npy or a folder", got=path.suffix)


def _from_archive(path: Path, names: InputNames) -> Iterator[tuple[Array, ...]]:
    present = names_in_npz(path)
    samples = numbered(dict.fromkeys(present, np.zeros(0)))
    if samples:
        return _numbered(path, len(samples), names)
    if len(names.specs) == 1 and not set(present) & set(names.positions):
        anonymous = present if len(present) == 1 else tuple(name for name in present if name == "x")
        return rows_of_npz(path, anonymous or names.order(present))
    return rows_of_npz(path, names.order(present))


def _numbered(path: Path, samples: int, names: InputNames) -> Iterator[tuple[Array, ...]]:
    with np.load(path, allow_pickle=False) as entries:  # reads each array when it is asked for
        for k in range(samples):
            wanted = [f"s{k}_in{i}" for i in range(len(names.specs))]
            missing = next((name for name in wanted if name not in entries.files), None)
            if missing is not None:
                raise CalibrationError(f"the archive has no {missing}", sample=k, name=str(path))
            yield tuple(entries[name] for name in wanted)


def _from_folder(folder: Path, names: InputNames) -> Iterator[tuple[Array, ...]]:
    readers = {".npy": _array, ".npz": _arrays, **dict.fromkeys(SUFFIXES, _image)}
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in readers and p.is_file())
    for number, path in enumerate(paths):
        yield readers[path.suffix.lower()](path, names, number)


def _array(path: Path, names: InputNames, number: int) -> tuple[Array, ...]:
    names.check_count(1, number)
    return (load_npy(path),)


def _arrays(path: Path, names: InputNames, number: int) -> tuple[Array, ...]:
    return names.ordered(load_npz(path), number)


def _image(path: Path, names: InputNames, number: int) -> tuple[Array, ...]:
    names.check_count(1, number)
    spec = names.specs[0]
    shape = spec.shape_signature or spec.shape
    if len(shape) != 4 or min(shape[1:]) < 1:
        name = spec.name or "input"
        raise CalibrationError("takes no image", sample=number, name=name, expected="[1, H, W, C]", got=list(shape))
    height, width, channels = shape[1:]
    image = read_image(path, height, width, channels)
    return (image.astype(np.float32) if spec.type == TensorType.FLOAT32 else image,)
