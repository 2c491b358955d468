"""Inputs of a model: generated, from files, or from the caller; always checked against the model's inputs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from tflq.comparison.verification.generators import GENERATORS, generate
from tflq.comparison.verification.preparation import PLAIN, Preparation, image, image_paths
from tflq.comparison.verification.results import InputFacts
from tflq.engine.interpreter.arrays import fits, open_shape
from tflq.engine.runtimes import Sample
from tflq.engine.runtimes.transport import unpack
from tflq.errors import FileAccessError, InputError, UnknownNameError, UnsupportedError, memory_named
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, input_names, view
from tflq.model.storage.archive import opened
from tflq.model.storage.arrays import load_array
from tflq.model.storage.reading import read_bytes
from tflq.typing import Array

T = TypeVar("T")
#: One sample: arrays by input name, or in input order.
SampleSource: TypeAlias = "Mapping[str, ArrayLike] | Sequence[ArrayLike]"
#: A generator's name, a path, one sample, a list of samples (dicts, lists or tuples), or None for the random generator.
InputSource: TypeAlias = "str | os.PathLike[str] | SampleSource | Sequence[SampleSource] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Samples in the order of the graph's inputs, and their source."""

    facts: InputFacts
    samples: tuple[Sample, ...]


def make_inputs(
    model: Model, source: InputSource = None, samples: int = 1, seed: int = 0, how: Preparation = PLAIN
) -> Inputs:
    """Return inputs for the first subgraph of `model`; `how` prepares values that do not come from a generator.

    A path is an `.npz` with entries named after the inputs, each of one sample or with a row for each, or
    `s<k>_in<i>`; an image; or a folder of images. For a model with one input, it may also be an `.npz` with one array
    or one named `x`, an `.npy` or a file of raw little-endian elements, each with one or more samples. Rows are
    samples, even if the batch is open. A `.log` or `.txt` is what a board printed.
    """
    if samples < 1:
        raise InputError("number of samples", expected="at least 1", got=samples)
    if seed < 0:
        raise InputError("seed", expected="at least 0", got=seed)
    with memory_named("the inputs"):
        return _made(model, source, samples, seed, how)


def _made(model: Model, source: InputSource, samples: int, seed: int, how: Preparation) -> Inputs:
    if source is None or (isinstance(source, str) and source in GENERATORS):
        name = source or "random"
        generated = generate(model, GENERATORS[name], samples, seed)
        return Inputs(InputFacts(name, seed, samples), generated)
    if isinstance(source, (str, os.PathLike)):
        read = _from_file(model, Path(source), how)
        return Inputs(InputFacts(os.fspath(source), None, len(read)), read)
    sequence = source if _is_many(source) else (cast(SampleSource, source),)
    read = tuple(
        _by_name(model, one, how) if isinstance(one, Mapping) else _by_position(model, one, how) for one in sequence
    )
    return Inputs(InputFacts("arrays", None, len(read)), read)


def _is_many(source: SampleSource | Sequence[SampleSource]) -> TypeGuard[Sequence[SampleSource]]:
    """Return whether this is a list of samples: its elements are then dicts, lists or tuples, never arrays."""
    if isinstance(source, Mapping) or len(source) == 0:  # an empty list is one sample for a model without inputs
        return False
    return all(isinstance(one, (Mapping, list, tuple)) for one in source)


def from_files(model: Model, paths: Mapping[str, str | os.PathLike[str]], how: Preparation = PLAIN) -> Inputs:
    """Return one sample, each input by name from an `.npy` file, a raw file or an image."""
    names = input_names(model)
    specs = {spec.name or "": spec for spec in input_specs(model)} | dict(zip(names, input_specs(model), strict=True))
    for name in paths:
        if name not in specs:
            raise UnknownNameError("input", name, names)
    arrays = {}
    for name, path in paths.items():
        samples = _samples(specs[name], Path(path), how)
        if len(samples) != 1:
            raise InputError("number of samples", name=os.fspath(path), expected=1, got=len(samples))
        arrays[name] = samples[0]
    source = ", ".join(f"{name}={os.fspath(path)}" for name, path in paths.items())
    return Inputs(InputFacts(source, None, 1), (_by_name(model, arrays, PLAIN),))


def input_specs(model: Model) -> tuple[TensorSpec, ...]:
    """Return the graph inputs of the first subgraph, in order."""
    graph = view(model)
    return tuple(graph.tensors[tensor] for tensor in graph.inputs)


def _by_name(model: Model, arrays: Mapping[str, ArrayLike], how: Preparation) -> Sample:
    """Return a sample from arrays by the signature's names of inputs, or by their tensors' names."""
    specs = input_specs(model)
    return tuple(how.checked(spec, value) for spec, value in zip(specs, _in_order(model, arrays), strict=True))


def _in_order(model: Model, arrays: Mapping[str, T]) -> list[T]:
    """Return arrays that are given by the names of inputs, in the order of the inputs."""
    specs, names = input_specs(model), input_names(model)
    known = {**{spec.name: i for i, spec in enumerate(specs) if spec.name}, **{n: i for i, n in enumerate(names)}}
    given: dict[int, T] = {}
    for name in arrays:
        if name not in known:
            raise UnknownNameError("input", name, names)
        if known[name] in given:
            raise InputError("is given twice, by the signature's name and by the tensor's", name=names[known[name]])
        given[known[name]] = arrays[name]
    missing = [name for i, name in enumerate(names) if i not in given]
    if missing:
        raise InputError("no value is given", name=missing[0])
    return [given[i] for i in range(len(specs))]


def _by_position(model: Model, arrays: Sequence[ArrayLike], how: Preparation) -> Sample:
    specs = input_specs(model)
    if len(arrays) != len(specs):
        raise InputError("number of inputs", expected=len(specs), got=len(arrays))
    return tuple(how.checked(spec, value) for spec, value in zip(specs, arrays, strict=True))


def _from_file(model: Model, path: Path, how: Preparation) -> tuple[Sample, ...]:
    specs = input_specs(model)
    images = image_paths(path)
    if images:
        if len(specs) != 1:
            raise InputError("images are for a model of one input", name=str(path), expected=1, got=len(specs))
        return tuple((how.checked(specs[0], image(one, specs[0], how)),) for one in images)
    if not path.is_file():
        if path.is_dir():
            raise FileAccessError(path, "is a folder without images")
        if path.exists():
            raise FileAccessError(path, "is not a file")
        raise UnknownNameError("file or input generator", str(path), tuple(GENERATORS))
    if path.suffix == ".npz":
        return _from_npz(model, path, how)
    if path.suffix in (".log", ".txt"):
        return _from_log(model, path)
    if len(specs) != 1:
        raise InputError("needs an .npz file, one entry an input", name=str(path), expected="1 input", got=len(specs))
    return tuple((sample,) for sample in _samples(specs[0], path, how))


def _from_log(model: Model, path: Path) -> tuple[Sample, ...]:
    """Return the inputs in the text that a board printed, one sample for each time that it printed them."""
    from tflq.comparison.verification.evidence.dumps import load_dumps

    inputs = view(model).inputs
    samples = tuple(
        tuple(d.tensors[t] for t in inputs) for d in load_dumps(model, path) if all(t in d.tensors for t in inputs)
    )
    if not samples:
        raise InputError("holds no inputs of the model", name=str(path), expected=" and ".join(input_names(model)))
    return samples


def _samples(spec: TensorSpec, path: Path, how: Preparation) -> list[Array]:
    """Return the samples of one input in an `.npy` or raw file, or an image."""
    if image_paths(path) == [path]:
        return [how.checked(spec, image(path, spec, how))]
    return _split(spec, load_array(path) if path.suffix == ".npy" else _raw(path, spec), how)


def _from_npz(model: Model, path: Path, how: Preparation) -> tuple[Sample, ...]:
    specs = input_specs(model)
    with opened(path) as archive:
        count = len(numbered(archive))
        if count:
            return tuple(_number_sample(specs, archive, k, path, how) for k in range(count))
        name = only_array(tuple(archive), (*input_names(model), *(spec.name for spec in specs)))
        if len(specs) == 1 and name is not None:
            return tuple((sample,) for sample in _split(specs[0], archive[name], how))
        rows = [_split(spec, value, how) for spec, value in zip(specs, _in_order(model, archive), strict=True)]
    if len(set(map(len, rows))) > 1:
        raise InputError("has rows for other numbers of samples", name=str(path), got=list(map(len, rows)))
    return tuple(zip(*rows, strict=True))


def only_array(present: Sequence[str], names: Sequence[str | None]) -> str | None:
    """Return the array for a model's only input: one of its names, else the only array, or `x`; None if none is."""
    if len(present) == 1:
        return present[0]
    return "x" if "x" in present and not set(present).intersection(names) else None


def numbered(names: Iterable[str]) -> list[int]:
    """Return the sample numbers k = 0, 1, ... with entries `s<k>_...`; a gap is refused."""
    present = {name[1:].partition("_")[0] for name in names if name.startswith("s") and "_" in name}
    numbers: list[int] = []
    while str(len(numbers)) in present:
        numbers.append(len(numbers))
    beyond = sorted(name for name in present if name.isdecimal() and name not in set(map(str, numbers)))
    if numbers and beyond:
        raise InputError(f"holds entries of sample {beyond[0]:.20}, but none of sample {len(numbers)}", name="samples")
    return numbers


def _number_sample(
    specs: Sequence[TensorSpec], entries: Mapping[str, Array], k: int, path: Path, how: Preparation
) -> Sample:
    values = []
    for i, spec in enumerate(specs):
        value = unpack(f"s{k}_in{i}", entries)
        if value is None:
            raise InputError(f"has no entry s{k}_in{i}", name=str(path))
        values.append(how.checked(spec, value))
    return tuple(values)


#: Endings of files that hold text, of any size.
_TEXT = frozenset((".csv", ".json", ".tsv", ".txt", ".yaml", ".yml"))


def _raw(path: Path, spec: TensorSpec) -> Array:
    """Return the raw elements of one input, for one or more consecutive samples."""
    if not isinstance(spec.type, TensorType) or CARRIER[spec.type] == np.dtype(object):
        raise UnsupportedError("raw input file", reason=f"input {spec.name!r} has no plain elements")
    if path.suffix.lower() in _TEXT:
        raise InputError("kind of file", name=str(path), expected=".npz, .npy, an image or raw bytes", got=path.suffix)
    carrier = CARRIER[spec.type]
    data = read_bytes(path)
    size = math.prod(spec.shape) * carrier.itemsize
    if not size or not data or len(data) % size:
        raise InputError("size of the raw file", name=str(path), expected=f"a multiple of {size} bytes", got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier).reshape(-1, *spec.shape)


def _fits(spec: TensorSpec, shape: tuple[int, ...]) -> bool:
    declared = open_shape(spec)
    return declared is None or fits(declared, shape)


def _split(spec: TensorSpec, value: Array, how: Preparation) -> list[Array]:
    """Return one sample, or several stacked along a new first axis or along a first axis of size 1, open or not."""
    if len(value.shape) > 1 and value.shape[0] > 1 and spec.shape[:1] == (1,) and _fits(spec, (1, *value.shape[1:])):
        return [how.checked(spec, part[None]) for part in value]
    if _fits(spec, value.shape):
        return [how.checked(spec, value)]
    if value.ndim and len(value) and _fits(spec, value.shape[1:]):
        return [how.checked(spec, part) for part in value]
    return [how.checked(spec, value)]
