"""Which tensor of a model an entry of a dump is: by its name or number, or by its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tflq.comparison.verification.evidence.c_arrays import Numbers
from tflq.comparison.verification.evidence.forms import Entries, Entry
from tflq.comparison.verification.evidence.tensor_names import index_of, names_of
from tflq.errors import InputError
from tflq.escaping import quoted
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.typing import Array


def is_named(model: Model, entries: Entries) -> bool:
    """Return whether an entry has a tensor's name or number."""
    names = names_of(model)
    keys = {*entries, *(e.name for e in entries.values() if isinstance(e, Numbers))}
    return any(index_of(model, names, key) is not None for key in keys)


def fitting_tensor(model: Model, source: str, key: str, value: Entry) -> int:
    """Return the only output that an entry fits, or else the only input of the graph or result of an operator."""
    graph = view(model)
    for group in (graph.outputs, (*graph.inputs, *graph.computed)):
        fitting = [t for t in dict.fromkeys(group) if _fits(graph.tensors[t], value)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            named = ", ".join(f"{t} {quoted(graph.tensors[t].name or '')}" for t in fitting[:5])
            raise InputError(f"{quoted(key)} fits {len(fitting)} tensors ({named}); name it", name=source)
    raise nothing_named(model, source, [key])


def _fits(spec: TensorSpec, value: Entry) -> bool:
    """Return whether an entry may be that tensor, for one sample or, if it is an array, for several."""
    size = math.prod(spec.shape)
    if not isinstance(spec.type, TensorType) or not size:
        return False
    width = CARRIER[spec.type].itemsize
    if isinstance(value, Numbers):
        return len(value.words) in (size, size * width)
    if isinstance(value, np.ndarray):
        return all(row.shape == spec.shape for row in rows(value, spec.shape))
    return isinstance(value, Path) and value.suffix != ".npy" and value.stat().st_size == size * width


def row_count(stored: Array, shape: Sequence[int]) -> int:
    """Return the number of samples of a shape that an array has, one for each entry of its first axis; else 0."""
    is_stacked = stored.shape[1:] == tuple(shape) or (stored.shape[1:] == tuple(shape)[1:] and shape[0] == 1)
    return len(stored) if stored.ndim and shape and stored.shape != tuple(shape) and is_stacked else 0


def rows(stored: Array, shape: Sequence[int]) -> list[Array]:
    """Return an array as samples of a shape: itself, or one for each entry of its first axis."""
    shape = tuple(shape)
    if stored.shape == shape or not stored.ndim:
        return [stored]
    if stored.shape[1:] == shape[1:] and shape[:1] == (1,):
        return list(stored[:, None])
    if stored.shape[1:] == shape:
        return list(stored)
    if shape[:1] == (1,) and stored.shape == shape[1:]:
        return [stored[None]]
    return list(stored[:, None]) if stored.ndim == len(shape) and stored.shape[0] > 1 else [stored]


def nothing_named(model: Model, source: str, unknown: list[str]) -> InputError:
    """Return the error about entries of which none is a tensor of the model."""
    name = next((spec.name for spec in view(model).tensors if spec.name), None)
    known = ("" if name is None else f"names such as {name!r} or ") + "indices such as 't0'"
    got = ", ".join(map(repr, unknown[:5])) or "nothing"
    return InputError("no entry names a tensor of the model", name=source, expected=known, got=got)
