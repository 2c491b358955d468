"""Which tensor an entry is, and inputs from the numbers that owners have.

Which tensor of a model an entry of a dump is: by its name or number, or by its size.

Inputs of a device, from the numbers that its owner has: codes, real values, stored numbers or images.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tflq.comparison.evidence.c_arrays import Numbers, index_of, names_of
from tflq.comparison.evidence.forms import Entries, Entry
from tflq.comparison.inputs.prepare import InputPreparation, Scaling, encode, image_paths, read_image
from tflq.comparison.inputs.read import InputSource, make_inputs
from tflq.comparison.inputs.read import numbered as numbers_of_samples
from tflq.engine.kernels.checks import code_limits
from tflq.engine.runtimes import Sample
from tflq.errors import InputError, InputWarning, TypeMismatchError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.model.ir.constants import codec_of
from tflq.model.storage.arrays import load_array, opened
from tflq.texts import Statement, quoted
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


#: Samples of an input, one array each.
Samples = Sequence[Array]
#: Relative distance of a range's ends within which a scaling is recognized.
_NEAR = 0.02


def device_inputs(model: Model, source: InputSource, how: InputPreparation) -> tuple[Sample, ...]:
    """Return what a device was fed, if its owner prepared `source` as the model expects.

    Floats for an input of codes are real values. Other numbers than codes are stored ones, 0 to 255, which are scaled
    to the input's range with a warning, unless `how` has a scaling.

    Raises:
        InputError: The source does not fit the model's inputs.
    """
    how = replace(how, quantize=True)
    try:
        return make_inputs(model, source, how=how).samples
    except TypeMismatchError:
        implied = [expected_scaling(view(model).tensors[t]) for t in view(model).inputs]
        if how.scaling is not None or len(implied) != 1 or implied[0] is None:
            raise
        mean, std = implied[0]
    made = make_inputs(model, source, how=replace(how, scaling=Scaling.of(mean, std)))
    text = f"{made.facts.source} was scaled by mean {mean:g} and std {std:g}, which the input's range implies"
    warnings.warn(InputWarning(Statement(text, "implied-scaling", mean=mean, std=std)), stacklevel=2)
    return made.samples


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
            numbered = [name for k in numbers_of_samples(archive) if (name := f"s{k}_in0") in archive]
            chosen = names[:1] or numbered or (list(archive) if len(archive) == 1 else [])
            if not chosen:
                raise InputError(f"no entry is named {spec.name!r}", name=str(path), got=list(archive)[:8])
            return [row for name in chosen for row in rows(archive[name], spec.shape)]
    images = image_paths(place)
    if not images or len(spec.shape) != 4:
        raise InputError("is neither .npy, .npz nor an image of the input's rank", name=str(path))
    return [np.asarray(read_image(image, *spec.shape[1:], bgr=bgr))[None] for image in images]


def expected_scaling(spec: TensorSpec) -> tuple[float, float] | None:
    """Return the mean and standard deviation by which numbers 0 to 255 fill the input's range; None if none is known.

    The range is that of the codes, by scale and zero point: -1 to 1 implies 127.5 and 127.5, 0 to 1 implies 0 and 255.
    """
    codec = codec_of(spec)
    if codec is None:
        return None
    low, high = codec.ends
    width = high - low
    for mean, std in ((0.0, 255.0), (127.5, 127.5), (0.0, 1.0), (128.0, 128.0), (0.0, 127.5)):
        ends = (0 - mean) / std, (255 - mean) / std
        if max(abs(ends[0] - low), abs(ends[1] - high)) <= _NEAR * width:
            return mean, std
    return None


def codes(spec: TensorSpec, real: Array, *, even: bool = False) -> Array:
    """Return the codes of real values: divided by the scale, rounded, saturated.

    Halves go away from zero, or with `even` to the even code, as NumPy's `round` rounds. Host code does either.
    """
    codec = codec_of(spec)
    assert codec is not None  # the caller prepares codes
    if even:
        return saturate(spec, np.rint(real.astype(np.float32) / np.float32(codec.scale)) + codec.zero)
    return encode(codec, real.astype(np.float32))


def prepare(spec: TensorSpec, samples: Samples, scaling: Scaling | None, *, even: bool = False) -> list[Array] | None:
    """Return what the model expects for the user's numbers; None if that is unknown.

    Numbers 0 to 255 are scaled by `scaling`, or by what scale and zero point imply. Numbers of the input's own type
    are codes, other floats are real values.
    """
    carrier = CARRIER[TensorType(spec.type)]
    if codec_of(spec) is None:
        return [np.asarray(v if scaling is None else scaling.apply(v)).astype(carrier) for v in samples]
    if scaling is None and all(v.dtype == carrier for v in samples):
        return list(samples)
    real = real_values(spec, samples, scaling)
    return None if real is None else [codes(spec, v, even=even) for v in real]


def scaling_of(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> Scaling | None:
    """Return the scaling of the user's numbers: the given one, or what scale and zero point imply.

    The result is None for real values and codes, and if none is known.
    """
    if scaling is not None:
        return scaling
    implied = expected_scaling(spec)
    is_stored = all(v.dtype.kind != "f" and v.dtype != CARRIER[TensorType(spec.type)] for v in samples)
    return Scaling.of(*implied) if implied is not None and is_stored else None


def real_values(spec: TensorSpec, samples: Samples, scaling: Scaling | None) -> list[Array] | None:
    """Return the user's numbers as real values; None if they are codes already."""
    if scaling is None and all(v.dtype.kind == "f" for v in samples):
        return list(samples)
    chosen = scaling_of(spec, samples, scaling)
    return None if chosen is None else [chosen.apply(v) for v in samples]


def saturate(spec: TensorSpec, values: Array) -> Array:
    """Return values as codes of the tensor's type, saturated; raise an InputError if one is NaN."""
    if np.isnan(values).any():
        raise InputError("holds NaN, which has no code", name=spec.name or "input")
    low, high = code_limits(TensorType(spec.type))
    return np.clip(values, low, high).astype(CARRIER[TensorType(spec.type)])
