"""Dumps: tensors of one run of a model, from anywhere, by tensor index.

An `.npz` whose keys are tensor names or indices, a golden file, or a folder of `.npy`, raw `.bin` and C files named so.
A dump may hold any part of the tensors. In file names every character that is no letter, digit, `.`, `_` or `-` may be
written as `_`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FileAccessError, InputError
from tflq.ir import CARRIER, Model, TensorType
from tflq.verification.golden import load_golden
from tflq.verification.inputs import load_npy, load_npz, numbered

Array = NDArray[Any]
_C_FILES = (".c", ".cc", ".cpp", ".h")
_FILES = (".npy", ".bin", ".raw", *_C_FILES)


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """Values by tensor index of the first subgraph. `unknown` are entries that name no tensor of the model."""

    source: str
    tensors: Mapping[int, Array]
    unknown: tuple[str, ...] = ()


def load_dump(model: Model, path: str | os.PathLike[str]) -> Dump:
    """Read a dump. Types and shapes are held against the model's; entries that name no tensor are listed."""
    place = Path(path)
    if place.is_dir():
        entries: dict[str, Array | Path] = {
            file.stem: file for file in sorted(place.iterdir()) if file.suffix in _FILES
        }
    elif place.suffix == ".npz":
        arrays = load_npz(place)
        if numbered(arrays) and "s0_out0" in arrays:
            return Dump(os.fspath(path), _of_golden(model, place))
        entries = dict(arrays)
    else:
        raise FileAccessError(place, "is neither a folder nor an .npz file" if place.exists() else "does not exist")
    names = _names(model)
    tensors: dict[int, Array] = {}
    unknown = []
    for key, value in entries.items():
        index = _index(model, names, key)
        if index is None:
            unknown.append(key)
            continue
        array = _value(model, index, value, key)
        if index in tensors and tensors[index].tobytes() != array.tobytes():
            raise InputError(f"is for tensor {index}, of which another entry says otherwise", name=key)
        tensors[index] = array
    if not tensors:
        raise InputError("no entry names a tensor of the model", name=os.fspath(path), got=unknown[:5])
    return Dump(os.fspath(path), tensors, tuple(unknown))


def _of_golden(model: Model, path: Path) -> dict[int, Array]:
    """The first sample of a golden file."""
    graph, seen = model.subgraphs[0], load_golden(path).observations[0]
    if len(seen.inputs) != len(graph.inputs) or len(seen.outputs) > len(graph.outputs):
        raise InputError("is for a model with other inputs or outputs", name=str(path))
    known = {
        **dict(zip(graph.outputs, seen.outputs)),  # noqa: B905 (trailing outputs may be absent)
        **seen.tensors,
        **dict(zip(graph.inputs, seen.inputs, strict=True)),
    }
    return {t: _value(model, t, v, f"tensor {t}") for t, v in known.items() if v is not None}


def _names(model: Model) -> dict[str, int]:
    """Tensor indices by name and by name as files spell it; names that several tensors have are left out."""
    found: dict[str, set[int]] = {}
    for index, spec in enumerate(model.subgraphs[0].tensors):
        for name in {spec.name or "", re.sub(r"[^\w.-]", "_", spec.name or "")}:
            found.setdefault(name, set()).add(index)
    return {name: next(iter(indices)) for name, indices in found.items() if name and len(indices) == 1}


def _index(model: Model, names: Mapping[str, int], key: str) -> int | None:
    if key in names:
        return names[key]
    number = re.fullmatch(r"(?:t|tensor_?)?(\d+)", key)
    index = int(number[1]) if number else -1
    return index if 0 <= index < len(model.subgraphs[0].tensors) else None


def _value(model: Model, index: int, value: Array | Path, key: str) -> Array:
    """The array in the tensor's type; its shape is the model's where the sizes agree."""
    spec = model.subgraphs[0].tensors[index]
    if not isinstance(spec.type, TensorType):
        raise InputError("tensor of an unknown type", name=key)
    carrier = CARRIER[spec.type]
    array = _read(value, carrier, key) if isinstance(value, Path) else value
    if array.dtype.newbyteorder("=") != carrier:
        raise InputError("type", name=key, expected=str(carrier), got=str(array.dtype))
    if array.size == int(np.prod(spec.shape, dtype=np.int64)):
        array = array.reshape(spec.shape)
    elif array.ndim != len(spec.shape):
        raise InputError("shape", name=key, expected=spec.shape, got=array.shape)
    return np.ascontiguousarray(array)


def _read(path: Path, carrier: np.dtype[Any], key: str) -> Array:
    if path.suffix == ".npy":
        return load_npy(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    if path.suffix in _C_FILES:
        return _c_array(data.decode("utf-8", "replace"), carrier, key)
    if len(data) % carrier.itemsize:
        raise InputError("size", name=str(path), expected=f"a multiple of {carrier.itemsize} bytes", got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier)


def _c_array(text: str, carrier: np.dtype[Any], key: str) -> Array:
    """The numbers between the braces of the only array in a C file."""
    bodies = re.findall(r"=\s*\{(.*?)\}\s*;", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL), re.DOTALL)
    if len(bodies) != 1:
        raise InputError("arrays in a C file", name=key, expected=1, got=len(bodies))
    words = re.sub(r"[{}\s]+", " ", bodies[0]).replace(",", " ").split()
    try:
        if carrier.kind == "f":
            return np.array([float(word.rstrip("fF")) for word in words], carrier)
        return np.array([int(word.rstrip("uUlL"), 0) for word in words], carrier)
    except (ValueError, OverflowError) as error:
        raise InputError(str(error), name=key) from error
