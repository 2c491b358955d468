"""Dumps: tensors of one run of a model, from any source, by tensor index.

A dump has one of these forms:

- an `.npz` whose keys are tensor names or indices, with prefixes s0_, s1_ ... for several samples;
- a golden file;
- a folder of `.npy`, raw `.bin` and C files with such names, or a C file of several arrays;
- a folder of one conformance case;
- a file of tflite-micro's layer_by_layer.

A dump may hold any part of the tensors. Every character of a name except letters, digits, `.`, `_` and `-` may be
written as `_`; in C, those three too.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.c_arrays import Numbers, c_arrays
from tflq.diagnosis.case_folder import case_samples, is_case
from tflq.diagnosis.layer_by_layer import layer_by_layer_tensors
from tflq.errors import FileAccessError, InputError, OptionError, ShapeError
from tflq.interpreter.arrays import admit, open_shape
from tflq.ir import CARRIER, Model, TensorType, view
from tflq.runtimes import Sample
from tflq.storage.archive import Archive, opened
from tflq.storage.arrays import load_array
from tflq.storage.reading import read_bytes
from tflq.verification.bundle import is_bundle
from tflq.verification.dump import Dump, dumps_of_golden
from tflq.verification.golden import PROVENANCE, Golden
from tflq.verification.goldens import load_golden
from tflq.verification.inputs import InputSource, make_inputs, numbered
from tflq.verification.preparation import codes_of_floats, is_whole, takes_codes

__all__ = ["Dump", "dump_of", "load_dump", "load_dumps"]

Array = NDArray[Any]
_SAMPLE, _STEP = re.compile(r"s(\d+)_", re.ASCII), re.compile(r"[^/]+/s\d+_(in|out)\d+", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """An array of an open archive that has not been read."""

    archive: Archive
    key: str


#: An entry of a dump before its tensor is known: an array, one in an archive or a file, or numbers from C.
Entry: TypeAlias = "Array | Stored | Path | Numbers"
_C_FILES = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc")
_FILES = (".npy", ".bin", ".raw", *_C_FILES)


def load_dump(model: Model, path: str | os.PathLike[str], sample: int = 0) -> Dump:
    """Read one sample of a dump; see `load_dumps`."""
    return load_dumps(model, path, sample)[0]


def load_dumps(
    model: Model, path: str | os.PathLike[str], sample: int | None = None, inputs: InputSource = None
) -> tuple[Dump, ...]:
    """Read all samples of a dump, or one: golden files and archives of entries s0_..., s1_... hold several.

    Types and shapes are compared with the model's; entries that name no tensor are listed. If the dump lacks the inputs
    of the runs, `inputs` gives them, one sample each.
    """
    dumps = _samples(model, path)
    if inputs is not None:
        dumps = _with_inputs(model, dumps, make_inputs(model, inputs).samples)
    if sample is not None and not 0 <= sample < len(dumps):
        raise OptionError(f"sample {sample}: {os.fspath(path)} has samples 0 to {len(dumps) - 1}")
    return dumps if sample is None else dumps[sample : sample + 1]


def dump_of(model: Model, arrays: Mapping[str, Array] | Mapping[int, Array]) -> Dump:
    """Return a dump of arrays in memory, by tensor name or index."""
    return _named(model, "arrays", {str(key): np.asarray(value) for key, value in arrays.items()})


def _samples(model: Model, path: str | os.PathLike[str]) -> tuple[Dump, ...]:
    recording = recording_at(path)
    if recording is not None:
        return dumps_of_recording(model, recording, os.fspath(path))
    place = Path(path)
    if not place.exists():
        raise FileAccessError(place, "does not exist")
    if place.is_dir():
        if is_case(place):
            return tuple(_named(model, path, entries) for entries in case_samples(model, place))
        return (_named(model, path, _folder(place)),)
    if place.suffix in _C_FILES:
        return (_named(model, path, {numbers.name: numbers for numbers in _c_file(place)}),)
    if place.suffix != ".npz":
        return (_numbered(model, path, layer_by_layer_tensors(model, place)),)
    with opened(place) as archive:
        return tuple(_named(model, path, entries) for entries in _by_sample(archive))


def recording_at(path: str | os.PathLike[str]) -> Golden | None:
    """Return the recording at a path; None if it holds a dump of another form, or nothing."""
    if is_bundle(path):
        return load_golden(path)
    place = Path(path)
    if place.suffix != ".npz" or not place.is_file():
        return None
    with opened(place) as archive:
        is_recording = "s0_out0" in archive and (PROVENANCE in archive or all(map(_SAMPLE.match, archive)))
        has_steps = PROVENANCE in archive and any(map(_STEP.match, archive))
    return load_golden(place) if is_recording or has_steps else None


def dumps_of_recording(model: Model, golden: Golden, source: str) -> tuple[Dump, ...]:
    """Return the samples of a recording. Raise an InputError if they are of another model."""
    return tuple(
        replace(_numbered(model, source, one.tensors, recorded=True), unwritten=one.unwritten)
        for one in dumps_of_golden(model, golden, source)
    )


def stored_samples(model: Model, path: Path) -> tuple[dict[int, Array], ...]:
    """Return the arrays of an archive by tensor as they are stored, whether or not they fit the model."""
    names = _names(model)
    with opened(path) as archive:
        samples = [{_index(model, names, key): archive[e.key] for key, e in one.items()} for one in _by_sample(archive)]  # type: ignore[union-attr]
    return tuple({index: value for index, value in one.items() if index is not None} for one in samples)


def _by_sample(archive: Archive) -> Iterator[dict[str, Entry]]:
    """Yield entries of an archive by sample, without the sample prefix of their names."""
    starts = [_SAMPLE.match(key) for key in archive]
    numbers = numbered(archive) if all(starts) else []
    if not numbers:
        yield {key: Stored(archive, key) for key in archive}
        return
    samples: dict[str, dict[str, Entry]] = {}
    for start in filter(None, starts):
        samples.setdefault(start[1], {})[start.string[start.end() :]] = Stored(archive, start.string)
    yield from (samples[str(k)] for k in numbers)


def _with_inputs(model: Model, dumps: tuple[Dump, ...], samples: tuple[Sample, ...]) -> tuple[Dump, ...]:
    if len(dumps) != len(samples):
        raise InputError("samples of the inputs", name=dumps[0].source, expected=len(dumps), got=len(samples))
    known = (dict(zip(view(model).inputs, sample, strict=True)) for sample in samples)
    return tuple(replace(d, tensors={**inputs, **d.tensors}) for d, inputs in zip(dumps, known, strict=True))


def _folder(place: Path) -> dict[str, Entry]:
    """Return files by name. A C file of one array is also found by its file name, several arrays by their names."""
    entries: dict[str, Entry] = {}
    for file in sorted(place.iterdir()):
        if file.suffix in _C_FILES:
            arrays = _c_file(file)
            entries |= {file.stem: arrays[0]} if len(arrays) == 1 else {one.name: one for one in arrays}
        elif file.suffix in _FILES:
            entries[file.stem] = file
    return entries


def _c_file(path: Path) -> tuple[Numbers, ...]:
    return c_arrays(read_bytes(path).decode("utf-8", "replace"))


def _named(model: Model, path: str | os.PathLike[str], entries: Mapping[str, Entry]) -> Dump:
    """Return the dump of entries by their names."""
    names = _names(model)
    known: dict[str, tuple[int, Entry]] = {}
    unknown = []
    for key, value in entries.items():
        index = _index(model, names, key)
        if index is None and isinstance(value, Numbers):
            index = _index(model, names, value.name)
        if index is None:
            unknown.append(key)
        else:
            known[key] = index, value.archive[value.key] if isinstance(value, Stored) else value
    real = _holds_real_values(model, known.values())
    tensors: dict[int, Array] = {}
    for key, (index, value) in known.items():
        array = _value(model, index, value, key, real=real)
        if index in tensors and tensors[index].tobytes() != array.tobytes():
            raise InputError(f"is for tensor {index}, and another entry for it differs", name=key)
        tensors[index] = array
    if not tensors:
        raise _nothing_named(model, os.fspath(path), unknown)
    return Dump(os.fspath(path), tensors, tuple(unknown))


def _nothing_named(model: Model, source: str, unknown: list[str]) -> InputError:
    name = next((spec.name for spec in view(model).tensors if spec.name), None)
    known = ("" if name is None else f"names such as {name!r} or ") + "indices such as 't0'"
    got = ", ".join(map(repr, unknown[:5])) or "nothing"
    return InputError("no entry names a tensor of the model", name=source, expected=known, got=got)


def _numbered(
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


def _names(model: Model) -> dict[str, int]:
    """Return tensor indices by name and by its spelling in files; ambiguous names are left out."""
    indices_of: dict[str, set[int]] = {}
    for index, spec in enumerate(view(model).tensors):
        name = spec.name or ""
        for spelling in {name, re.sub(r"[^\w.-]", "_", name), re.sub(r"\W", "_", name)}:
            indices_of.setdefault(spelling, set()).add(index)
    return {name: next(iter(indices)) for name, indices in indices_of.items() if name and len(indices) == 1}


def _index(model: Model, names: Mapping[str, int], key: str) -> int | None:
    if key in names:
        return names[key]
    number = re.fullmatch(r"(?:t|tensor_?)?(\d{1,9})", key)
    index = int(number[1]) if number else -1
    return index if 0 <= index < len(view(model).tensors) else None


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
    if isinstance(value, Stored):
        return value.archive[value.key]
    if not isinstance(value, Path):
        return value
    return load_array(value) if value.suffix == ".npy" else _raw(value, carrier)


def _raw(path: Path, carrier: np.dtype[Any]) -> Array:
    data = read_bytes(path)
    if carrier.hasobject or len(data) % carrier.itemsize:
        raise InputError("size", name=str(path), expected=f"a multiple of {carrier.itemsize} bytes", got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier)
