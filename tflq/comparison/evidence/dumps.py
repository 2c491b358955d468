"""Dumps: known tensors of one run of a model, by tensor index. A golden file has one for each sample.

A dump has one of these forms:

- an `.npz` whose keys are tensor names or indices, with prefixes s0_, s1_ ... for several samples, or with a row for
  each sample;
- an `.npy` of one tensor, with a row for each sample;
- a golden file;
- a folder or a `.zip` of `.npy`, raw `.bin` and C files with such names, or a C file of several arrays;
- a log: text that a board or a debugger printed, see `logs`;
- a folder of one conformance case;
- a file of tflite-micro's layer_by_layer.

A dump may hold any part of the tensors. Every character of a name except letters, digits, `.`, `_` and `-` may be
written as `_`; in C, those three too. Where no entry has a tensor's name, each is the one tensor that it fits.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.evidence.c_arrays import Numbers, index_of, names_of
from tflq.comparison.evidence.forms import (
    Entries,
    Entry,
    StoredEntry,
    by_sample,
    entries_by_sample,
    layer_by_layer_tensors,
    raw_elements,
)
from tflq.comparison.evidence.inputs import device_inputs, fitting_tensor, is_named, nothing_named, row_count, rows
from tflq.comparison.goldens.golden import EMPTY, PROVENANCE, Golden, Observation
from tflq.comparison.goldens.stored import is_archive_of_files, is_bundle, load_golden
from tflq.comparison.inputs.prepare import PLAIN, InputPreparation, codes_of_floats, is_whole, takes_codes
from tflq.comparison.inputs.read import InputSource
from tflq.comparison.inspection.difference import bits_of
from tflq.comparison.results import InputFacts
from tflq.engine.interpreter.evaluation import admit, open_shape
from tflq.engine.runtimes import Sample
from tflq.errors import InputError, OptionError, ShapeError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.model.storage.arrays import load_array, opened
from tflq.typing import Array

__all__ = ["Dump", "dump_of", "load_dump", "load_dumps"]


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """Values by tensor index of the first subgraph. `unknown` are entries that name no tensor of the model.

    `variables` are the values of variable tensors, and those that are read by handles, before the run, if they differ
    from the model's. `unwritten` are tensors that the runtime never writes, as far as a recording names them. If it
    `continues`, the run began with the state that the sample before left.
    """

    source: str
    tensors: Mapping[int, Array]
    unknown: tuple[str, ...] = ()
    variables: Mapping[int, Array] = field(default_factory=dict)
    unwritten: frozenset[int] = frozenset()
    continues: bool = False

    def without(self, tensors: Iterable[int]) -> Dump:
        """Return the dump without some tensors."""
        dropped = set(tensors)
        return replace(self, tensors={t: v for t, v in self.tensors.items() if t not in dropped})


def dumps_of_golden(model: Model, golden: Golden, source: str = "") -> tuple[Dump, ...]:
    """Return samples of a golden. If all tensors were read, an output's value is the one read with them.

    Raises:
        InputError: The golden is for a model with other inputs or outputs, or without some of its tensors.
        ShapeError: An output has another shape than the tensor that was read for it.
    """
    lost = [frozenset(t for s, t in golden.unwritten or () if s == one.signature) for one in golden.observations]
    dumps = dumps_of(model, golden.observations, source)
    return tuple(replace(dump, unwritten=tensors) for dump, tensors in zip(dumps, lost, strict=True))


def dumps_of(model: Model, observations: Iterable[Observation], source: str = "") -> tuple[Dump, ...]:
    """Return observations as dumps; raise as `dumps_of_golden`."""
    return tuple(Dump(source, _known(model, one, source), continues=one.continues) for one in observations)


def _known(model: Model, observation: Observation, source: str) -> dict[int, Array]:
    graph = view(model)
    if len(observation.inputs) not in (0, len(graph.inputs)) or len(observation.outputs) > len(graph.outputs):
        raise InputError("is for a model with other inputs or outputs", name=source)
    unknown = [tensor for tensor in observation.tensors if not 0 <= tensor < len(graph.tensors)]
    if unknown:
        expected = f"0 to {len(graph.tensors) - 1}"
        raise InputError("holds a tensor that the model lacks", name=source, expected=expected, got=unknown[0])
    for tensor, output in zip(graph.outputs, observation.outputs):  # noqa: B905 (trailing outputs may be absent)
        tapped = observation.tensors.get(tensor)
        if output is not None and tapped is not None and output.shape != tapped.shape:
            raise ShapeError(graph.tensors[tensor].name or f"#{tensor}", tapped.shape, output.shape)
    known = {
        **dict(zip(graph.outputs, observation.outputs)),  # noqa: B905 (trailing outputs may be absent)
        **{t: v for t, v in observation.tensors.items() if v is not None},
        **dict(zip(graph.inputs, observation.inputs)),  # noqa: B905 (other recordings of the same inputs omit them)
    }
    return {t: v for t, v in known.items() if v is not None}


_SAMPLE = re.compile(r"s\d+_", re.ASCII)


#: Where the tensors of runs are: a path, or a recording in memory.
DumpSource: TypeAlias = "str | os.PathLike[str] | Golden"


def load_dump(model: Model, path: str | os.PathLike[str], sample: int = 0) -> Dump:
    """Read one sample of a dump; see `load_dumps`."""
    return load_dumps(model, path, sample)[0]


def load_dumps(
    model: Model,
    source: DumpSource,
    sample: int | None = None,
    inputs: InputSource = None,
    how: InputPreparation = PLAIN,
) -> tuple[Dump, ...]:
    """Read all samples of a dump, or one: goldens and archives of entries s0_..., s1_... hold several.

    Types and shapes are compared with the model's; entries that name no tensor are listed. If the dump lacks the inputs
    of the runs, `inputs` gives them, one sample each; see `device_inputs`.
    """
    dumps = _samples(model, source)
    if inputs is not None:
        dumps = _with_inputs(model, dumps, device_inputs(model, inputs, how))
    if sample is not None and not 0 <= sample < len(dumps):
        raise OptionError(f"sample {sample}: {name_of(source)} has samples 0 to {len(dumps) - 1}")
    return dumps if sample is None else dumps[sample : sample + 1]


def dump_of(model: Model, arrays: Mapping[str, Array] | Mapping[int, Array]) -> Dump:
    """Return a dump of arrays in memory, by tensor name or index."""
    return _name(model, "arrays", {str(key): np.asarray(value) for key, value in arrays.items()})


def name_of(source: DumpSource) -> str:
    """Return the path of a dump, or "recording"."""
    return "recording" if isinstance(source, Golden) else os.fspath(source)


def _samples(model: Model, source: DumpSource) -> tuple[Dump, ...]:
    recording = recording_at(source)
    if recording is not None:
        return dumps_of_recording(model, recording, name_of(source))
    path = name_of(source)
    place = Path(path)
    with ExitStack() as stack:
        samples = entries_by_sample(model, place, stack)
        if samples is None:
            return (_number(model, path, layer_by_layer_tensors(model, place)),)
        if len(samples) == 1 and not is_named(model, samples[0]):
            return _by_fit(model, os.fspath(path), samples[0])
        if len(samples) == 1:
            samples = _by_rows(model, samples[0])
        return tuple(_name(model, path, entries) for entries in samples)


def recording_at(path: DumpSource) -> Golden | None:
    """Return the recording at a path; None if it holds a dump of another form, or nothing."""
    if isinstance(path, Golden):
        return path
    if is_bundle(path) and not is_archive_of_files(path):
        return load_golden(path)
    place = Path(path)
    if place.suffix != ".npz" or not place.is_file():
        return None
    with opened(place) as archive:
        is_recording = PROVENANCE in archive or ("s0_out0" in archive and all(map(_SAMPLE.match, archive)))
    return load_golden(place) if is_recording else None


def golden_at(model: Model, path: str | os.PathLike[str]) -> Golden:
    """Return the recording at a path, or a dump of any form as one, without a runtime's name.

    Raises:
        FileAccessError: It cannot be read.
        GoldenError: It is a damaged recording.
        InputError: It holds no tensor of the model.
    """
    recording = recording_at(path)
    if recording is not None:
        return recording
    graph, dumps = view(model), load_dumps(model, path)
    inner = [t for t in graph.computed if t not in graph.outputs]
    with_tensors = any(t in dump.tensors for dump in dumps for t in inner)
    observations = tuple(
        Observation(
            inputs=tuple(d.tensors[t] for t in graph.inputs) if all(t in d.tensors for t in graph.inputs) else (),
            outputs=tuple(map(d.tensors.get, graph.outputs)),
            tensors={t: d.tensors.get(t) for t in graph.computed} if with_tensors else EMPTY,
        )
        for d in dumps
    )
    return Golden(observations, with_tensors, InputFacts(os.fspath(path), None, len(dumps)), {}, "", ())


def dumps_of_recording(model: Model, golden: Golden, source: str) -> tuple[Dump, ...]:
    """Return the samples of a recording. Raise an InputError if they are of another model."""
    return tuple(
        replace(_number(model, source, one.tensors, recorded=True), unwritten=one.unwritten)
        for one in dumps_of_golden(model, golden, source)
    )


def stored_samples(model: Model, path: Path) -> tuple[dict[int, Array], ...]:
    """Return the arrays of an archive or an `.npy` by tensor as they are stored, whether or not they fit the model."""
    if path.suffix == ".npy":
        tensor = view(model).outputs[0]
        return tuple({tensor: row} for row in rows(load_array(path), view(model).tensors[tensor].shape))
    names = names_of(model)
    with opened(path) as archive:
        read: Sequence[Entries] = [{key: archive[e.key] for key, e in one.items()} for one in by_sample(archive)]
        samples = [
            {index_of(model, names, key): np.asarray(value) for key, value in one.items()}
            for one in (_by_rows(model, read[0]) if len(read) == 1 else read)
        ]
    return tuple({index: value for index, value in one.items() if index is not None} for one in samples)


def _by_rows(model: Model, entries: Entries) -> Sequence[Entries]:
    """Return the samples of entries by name: several if every array of a tensor has a row for each."""
    names, tensors = names_of(model), view(model).tensors
    arrays = {key: _read(entry) for key, entry in entries.items()}
    shapes = {key: tensors[index].shape for key in entries if (index := index_of(model, names, key)) is not None}
    values = {key: value for key in shapes if isinstance(value := arrays[key], np.ndarray)}
    counts = {row_count(value, shapes[key]) for key, value in values.items()}
    if len(values) < len(shapes) or len(counts) != 1 or counts == {0}:
        return [arrays]
    split = {key: rows(value, shapes[key]) for key, value in values.items()}
    return [{**arrays, **{key: parts[k] for key, parts in split.items()}} for k in range(max(counts))]


def _read(entry: Entry) -> Entry:
    """Return an entry, of an archive or an `.npy` its array."""
    if isinstance(entry, StoredEntry):
        return entry.archive[entry.key]
    return load_array(entry) if isinstance(entry, Path) and entry.suffix == ".npy" else entry


def _by_fit(model: Model, source: str, entries: Entries) -> tuple[Dump, ...]:
    """Return the dumps of entries without a tensor's name: each is the one tensor that it fits.

    Arrays may have a row for each sample.

    Raises:
        InputError: One fits no tensor, or several.
    """
    samples: list[dict[int, Entry]] = []
    for key, entry in entries.items():
        value = _read(entry)
        index = fitting_tensor(model, source, key, value)
        shape = view(model).tensors[index].shape
        values: list[Entry] = list(rows(value, shape)) if isinstance(value, np.ndarray) else [value]
        samples = samples or [{} for _ in values]
        if len(samples) != len(values):
            raise InputError("samples", name=key, expected=len(samples), got=len(values))
        for one, row in zip(samples, values, strict=True):
            if index in one:
                raise InputError(f"fits the same tensor as another entry, {index}; name them", name=key)
            one[index] = row
    if not samples:
        raise nothing_named(model, source, [])
    return tuple(_name(model, source, {str(index): v for index, v in one.items()}) for one in samples)


def _with_inputs(model: Model, dumps: tuple[Dump, ...], samples: tuple[Sample, ...]) -> tuple[Dump, ...]:
    if len(dumps) != len(samples):
        raise InputError("samples of the inputs", name=dumps[0].source, expected=len(dumps), got=len(samples))
    known = (dict(zip(view(model).inputs, sample, strict=True)) for sample in samples)
    return tuple(replace(d, tensors={**inputs, **d.tensors}) for d, inputs in zip(dumps, known, strict=True))


def _name(model: Model, path: str | os.PathLike[str], entries: Mapping[str, Entry]) -> Dump:
    """Return the dump of entries by their names."""
    names = names_of(model)
    known: dict[str, tuple[int, Entry]] = {}
    unknown = []
    for key, value in entries.items():
        index = index_of(model, names, key)
        if index is None and isinstance(value, Numbers):
            index = index_of(model, names, value.name)
        if index is None:
            unknown.append(key)
        else:
            known[key] = index, value.archive[value.key] if isinstance(value, StoredEntry) else value
    real = _holds_real_values(model, known.values())
    tensors: dict[int, Array] = {}
    for key, (index, value) in known.items():
        array = _value(model, index, value, key, real=real)
        if index in tensors and bits_of(tensors[index]) != bits_of(array):
            raise InputError(f"is for tensor {index}, and another entry for it differs", name=key)
        tensors[index] = array
    if not tensors:
        raise nothing_named(model, os.fspath(path), unknown)
    return Dump(os.fspath(path), tensors, tuple(unknown))


def _number(
    model: Model, path: str | os.PathLike[str], tensors: Mapping[int, Array], *, recorded: bool = False
) -> Dump:
    count = len(view(model).tensors)
    beyond = next((t for t in tensors if not 0 <= t < count), None)
    if beyond is not None:
        expected = f"0 to {count - 1}"
        raise InputError("holds a tensor that the model lacks", name=os.fspath(path), expected=expected, got=beyond)
    real = _holds_real_values(model, tensors.items())
    values = {t: _value(model, t, v, f"tensor {t}", real=real, recorded=recorded) for t, v in tensors.items()}
    return Dump(os.fspath(path), values)


def _holds_real_values(model: Model, entries: Iterable[tuple[int, Entry]]) -> bool:
    """Return whether floats for integer tensors are dequantized values.

    They are if one of them is not a whole number; otherwise they are codes.
    """
    return any(
        _is_float_for_codes(model, index, value) and not is_whole(value)  # type: ignore[arg-type]
        for index, value in entries
    )


def _is_float_for_codes(model: Model, index: int, value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f" and takes_codes(view(model).tensors[index])


def _value(model: Model, index: int, value: Entry, key: str, *, real: bool = False, recorded: bool = False) -> Array:
    """Return the array in the tensor's carrier type, in the model's shape if it is given and the sizes agree.

    Floats for an integer tensor are its codes, or with `real` their real values. Results of operators may have other
    sizes here, since some are known only at run time; `recorded` arrays have the runtime's own shape.
    """
    spec = view(model).tensors[index]
    if not isinstance(spec.type, TensorType):
        raise InputError("tensor of an unknown type", name=key)
    size = math.prod(spec.shape)
    if _is_float_for_codes(model, index, value):
        value = codes_of_floats(spec, value, key, real=real)  # type: ignore[arg-type]
    array = admit(_array(value, CARRIER[spec.type], size), spec.type, None, key)
    if recorded and spec.shape == () and view(model).maker(index) is not None:
        return array  # the file has no shape for some results that get theirs at run time
    has_rank = open_shape(spec) is not None
    if array.size == size and (_is_flat(value) or has_rank):
        return array.reshape(spec.shape)
    if array.ndim != len(spec.shape) and has_rank:
        raise ShapeError(key, spec.shape, array.shape)
    return admit(array, spec.type, open_shape(spec), key) if index in view(model).inputs else array


def _is_flat(value: Entry) -> bool:
    """Return whether an entry is a flat row of numbers without shape information."""
    return isinstance(value, Numbers) or (isinstance(value, Path) and value.suffix != ".npy")


def _array(value: Entry, carrier: np.dtype[Any], size: int) -> Array:
    if isinstance(value, Numbers):
        return value.array(carrier, size)
    if isinstance(value, StoredEntry):
        return value.archive[value.key]
    if not isinstance(value, Path):
        return value
    return load_array(value) if value.suffix == ".npy" else raw_elements(value, carrier)
