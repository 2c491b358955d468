"""Evidence about a device: arrays of a dump, a recording or an output file, which need not fit the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.dump import load_dumps, stored_samples
from tflq.errors import InputError, TypeMismatchError
from tflq.ir import CARRIER, Model, TensorType, view
from tflq.storage.archive import opened
from tflq.storage.arrays import load_array
from tflq.verification.dump import Dump
from tflq.verification.pictures import read_image
from tflq.verification.preparation import image_paths

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The samples of a device's tensors, by tensor. `dumps` is None if they do not fit the model as they are.

    `problem` is the reason then.
    """

    samples: tuple[dict[int, Array], ...]
    dumps: tuple[Dump, ...] | None
    problem: str = ""


def read_evidence(model: Model, path: str | os.PathLike[str], sample: int | None = None) -> Evidence:
    """Read a dump, a recording, or an `.npy` of the first output with a row for each sample.

    Raises:
        FileAccessError: It cannot be read.
        InputError: It holds no tensor of the model.
    """
    place, graph = Path(path), view(model)
    if place.suffix == ".npy":
        tensor = graph.outputs[0]
        samples = tuple({tensor: row} for row in rows(load_array(place), graph.tensors[tensor].shape))
        if _fit(model, samples):
            return Evidence(samples, tuple(Dump(str(path), one) for one in samples))
        first = samples[0][tensor]
        return Evidence(samples, None, f"the output is {first.dtype}{list(first.shape)}")
    try:
        dumps = load_dumps(model, path, sample)
    except (InputError, TypeMismatchError) as error:
        if place.suffix != ".npz":
            raise
        stored = stored_samples(model, place)
        if not any(stored):
            raise
        return Evidence(stored, None, str(error))
    return Evidence(tuple(dict(dump.tensors) for dump in dumps), dumps)


def _fit(model: Model, samples: Sequence[dict[int, Array]]) -> bool:
    specs = view(model).tensors
    return all(
        value.dtype == CARRIER[TensorType(specs[t].type)] and value.shape == specs[t].shape
        for one in samples
        for t, value in one.items()
    )


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


def given_inputs(model: Model, path: str | os.PathLike[str], *, bgr: bool = False) -> list[Array]:
    """Return the user's numbers for the model's only input, one array for each sample, as they are stored.

    They are an `.npy`, the entry of an `.npz` with the input's name or the only entry, or images. With
    `bgr`, channels of images are in that order.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: The file does not name the input's values.
    """
    graph, place = view(model), Path(path)
    spec = graph.tensors[graph.inputs[0]]
    if len(graph.inputs) != 1:
        raise InputError("has several inputs; the evidence itself must hold them", name="model")
    if place.suffix == ".npy":
        return rows(load_array(place), spec.shape)
    if place.suffix == ".npz":
        with opened(place) as archive:
            names = [name for name in archive if name in (spec.name, "images", "x", "inputs")]
            numbered = sorted((name for name in archive if name.endswith("_in0")), key=lambda n: int(n[1:-4]))
            chosen = names[:1] or numbered or (list(archive) if len(archive) == 1 else [])
            if not chosen:
                raise InputError(f"no entry is named {spec.name!r}", name=str(path), got=list(archive)[:8])
            return [row for name in chosen for row in rows(archive[name], spec.shape)]
    images = image_paths(place)
    if not images or len(spec.shape) != 4:
        raise InputError("is neither .npy, .npz nor an image of the input's rank", name=str(path))
    return [np.asarray(read_image(image, *spec.shape[1:], bgr=bgr))[None] for image in images]
