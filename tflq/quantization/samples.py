"""Calibration data from files, folders, arrays and iterables: one sample at a time, read as often as needed.

The names by which a model's inputs may be given.

Samples in files: an archive, an array, or a folder of arrays or images.

Samples of a one-shot iterator, kept on disk for repeated reading.

One sample at a time, checked against the model's inputs, from any kind of source.

Calibration data from Python callers: samples, their scaling, and their right classes.

The right classes of samples, read from a file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tflq.comparison.inputs.prepare import SUFFIXES, Scaling, read_image
from tflq.comparison.inputs.read import numbered, only_array
from tflq.engine.interpreter.evaluation import admit, fits
from tflq.errors import CalibrationError, FileAccessError, InputError, TflqError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType, view
from tflq.model.storage import arrays as archives
from tflq.model.storage.arrays import load_array, load_rows, opened
from tflq.model.storage.kinds import read_bytes
from tflq.quantization.frontier import Sample
from tflq.quantization.quarters import KeptSamples, labels_of
from tflq.texts import display_by
from tflq.typing import Array

__all__ = ["Calibration", "CalibrationSource", "Scaling"]

Name = TypeVar("Name", str, Any)


@dataclass(frozen=True, slots=True, eq=False)
class InputNames:
    """The inputs of the first subgraph, and their positions by tensor index, tensor name and signature name."""

    tensors: tuple[int, ...]
    specs: tuple[TensorSpec, ...]
    positions: Mapping[str | int, int]

    @staticmethod
    def of(model: Model) -> InputNames:
        """Return the names from the model's first subgraph; tensor names win clashes."""
        graph = view(model)
        positions: dict[str | int, int] = {tensor: i for i, tensor in enumerate(graph.inputs)}
        for signature in model.signature_defs or ():
            if signature.subgraph_index == 0:
                positions.update({name: positions[tensor] for name, tensor in signature.inputs if tensor in positions})
        positions.update({name: i for i, tensor in enumerate(graph.inputs) if (name := graph.tensors[tensor].name)})
        return InputNames(graph.inputs, tuple(graph.tensors[t] for t in graph.inputs), positions)

    def ordered(self, names: Mapping[Any, ArrayLike], sample: int | None) -> tuple[Array, ...]:
        """Return arrays given by name or tensor index, in input order."""
        return tuple(np.asarray(names[name]) for name in self.order(names, sample))

    def order(self, names: Iterable[Name], sample: int | None = None) -> tuple[Name, ...]:
        """Return the given names in input order; every input must be named once, and nothing else."""
        by_position: dict[int, Name] = {}
        for name in names:
            i = self.positions.get(name)
            if i is None or i in by_position:
                reason = "there is no input of that name" if i is None else "is given twice"
                known = " or ".join(n for n in self.positions if isinstance(n, str))
                raise CalibrationError(reason, sample=sample, name=str(name), expected=known)
            by_position[i] = name
        for i, spec in enumerate(self.specs):
            if i not in by_position:
                raise CalibrationError("no value is given", sample=sample, name=spec.name or f"input {i}")
        return tuple(by_position[i] for i in range(len(self.specs)))

    def check_count(self, count: int, sample: int | None) -> None:
        """Raise if the number of arrays differs from the number of inputs."""
        if count != len(self.specs):
            raise CalibrationError("number of inputs", sample=sample, expected=len(self.specs), got=count)


def files_opened(
    source: str | os.PathLike[str], names: InputNames, *, bgr: bool = False
) -> Iterator[tuple[Array, ...]]:
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


SpoolSample = tuple[Array, ...]


class Spool:
    """A temporary file that is deleted with the last reference to the spool. It is filled during the first reading."""

    def __init__(self, samples: Iterable[SpoolSample]) -> None:
        self._source: Iterator[SpoolSample] = iter(samples)
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the spool)
        self._places: list[tuple[int, int]] = []  # where each sample begins, and how many arrays it has

    def __iter__(self) -> Iterator[SpoolSample]:
        """Yield all samples from the first on; samples not read before come from the source."""
        k = 0
        while k < len(self._places) or self._take():
            start, count = self._places[k]
            self._file.seek(start)
            yield tuple(np.lib.format.read_array(self._file, allow_pickle=False) for _ in range(count))
            k += 1

    def _take(self) -> bool:
        """Move one sample from the source to the file."""
        sample = next(self._source, None)
        if sample is None:
            return False
        start = self._file.seek(0, 2)
        for array in sample:
            np.lib.format.write_array(self._file, array, allow_pickle=False)
        self._places.append((start, len(sample)))
        return True


#: One sample: arrays in input order, by name or by tensor index, the batch dimension included; a bare array if there is
#: only one input.
SampleSource: TypeAlias = "Sequence[ArrayLike] | Mapping[str, ArrayLike] | Mapping[int, ArrayLike] | Array"
#: A path (.npz, .npy, folder), stacked arrays, an iterable of samples, or a function that returns one.
CalibrationSource: TypeAlias = (
    "str | os.PathLike[str] | Array | Mapping[str, ArrayLike] | Iterable[SampleSource] | "
    "Callable[[], Iterable[SampleSource]]"
)


@display_by("cards:calibration_card")
class Calibration:
    """Samples for the first subgraph of a model: by tensor index, one after another, as often as needed.

    Stacked arrays (a path, one array, or a dict of arrays) hold an element in each row along axis 0; an iterable and a
    folder give elements one by one. An element is a sample, or, if it holds several rows and the model takes one,
    a sequence: each row is a sample. The elements of a one-shot iterator are kept in a temporary file. `scaling`
    applies to float inputs; without it their data must be floats. With `bgr`, channels of images are in the order
    blue, green, red.

    Iterating raises CalibrationError, naming sample and tensor: number of inputs, names, shapes, types, NaN or infinite
    values, no samples at all.

    Example:
        >>> from tflq.model.ir import view
        >>> model = tflq.load("golden/models/digits_autoencoder_float.tflite")
        >>> samples = tflq.Calibration(model, np.load("golden/models/digits_test.npz")["images"][:3].astype(np.float32))
        >>> [sample[view(model).inputs[0]].shape for sample in samples]
        [(1, 8, 8, 1), (1, 8, 8, 1), (1, 8, 8, 1)]
    """

    def __init__(
        self,
        model: Model,
        source: CalibrationSource | Calibration,
        scaling: Scaling | None = None,
        *,
        bgr: bool = False,
    ) -> None:
        self._names = InputNames.of(model)
        self._scaling = scaling
        self._elements: Callable[[], Iterator[tuple[Array, ...]]]
        if isinstance(source, Calibration):
            self._elements, self._scaling = source._elements, scaling or source._scaling
        else:
            self._elements = self._open(source, bgr)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that the samples are for, in order."""
        return tuple(spec.name or f"input {i}" for i, spec in enumerate(self._names.specs))

    @property
    def scaling(self) -> Scaling | None:
        """The scaling of stored numbers of float inputs; None if they are floats already."""
        return self._scaling

    def __iter__(self) -> Iterator[dict[int, Array]]:
        return (sample for sample, _ in self.follow())

    def follow(self) -> Iterator[tuple[dict[int, Array], bool]]:
        """Yield the samples, each with whether a sequence begins there: at the first one, and around sequences."""
        number, is_apart = 0, True
        for arrays in self._elements():
            is_sequence = self._holds_rows(arrays)
            begins = is_sequence or is_apart
            for row in zip(*arrays, strict=True) if is_sequence else (arrays,):
                sample = zip(self._names.tensors, self._names.specs, self._whole(row, number), strict=True)
                yield {tensor: self._check(spec, array, number) for tensor, spec, array in sample}, begins
                number, begins = number + 1, False
            is_apart = is_sequence
        if not number:
            raise CalibrationError("there are no samples")

    def _open(self, source: CalibrationSource, bgr: bool) -> Callable[[], Iterator[tuple[Array, ...]]]:
        """Return a function that yields all elements from the first on, arrays in input order."""
        names = self._names
        if isinstance(source, (str, os.PathLike)):
            path = source
            return lambda: files_opened(path, names, bgr=bgr)
        if isinstance(source, Mapping):
            stacked = names.ordered(source, None)
            return lambda: _samples_side_by_side(stacked)
        if isinstance(source, np.ndarray):
            names.check_count(1, None)
            return lambda: ((row,) for row in source)
        if callable(source):
            return lambda: self._ordered(source())
        if iter(source) is source:
            spool = Spool(self._ordered(source))
            return lambda: iter(spool)
        return lambda: self._ordered(source)

    def _ordered(self, elements: Iterable[SampleSource]) -> Iterator[tuple[Array, ...]]:
        return (self._arrays(element, number) for number, element in enumerate(elements))

    def _arrays(self, sample: SampleSource, number: int) -> tuple[Array, ...]:
        if isinstance(sample, Mapping):
            return self._names.ordered(sample, number)
        if isinstance(sample, np.ndarray) and sample.dtype != object:
            sample = (sample,)
        try:
            values = cast("Sequence[ArrayLike]", sample)
            self._names.check_count(len(values), number)
            return tuple(np.asarray(value) for value in values)
        except (TypeError, ValueError) as error:
            if isinstance(error, CalibrationError):
                raise
            raise CalibrationError(
                "is not a list or dict of arrays", sample=number, got=type(sample).__name__
            ) from error

    def _holds_rows(self, arrays: Sequence[Array]) -> bool:
        """Return whether every array holds the same number of rows, more than one, and the model takes one."""
        lengths = {array.shape[0] if array.ndim else 0 for array in arrays}
        return (
            len(lengths) == 1
            and lengths.pop() > 1
            and all(
                _single(spec) and fits(_wanted(spec)[1:], array.shape[1:])
                for spec, array in zip(self._names.specs, arrays, strict=True)
            )
        )

    def _whole(self, row: Sequence[Array], number: int) -> tuple[Array, ...]:
        """Return a sample with the batch dimensions that its arrays lack."""
        self._names.check_count(len(row), number)
        return tuple(
            array[None] if _single(spec) and array.ndim == len(_wanted(spec)) - 1 else array
            for spec, array in zip(self._names.specs, row, strict=True)
        )

    def _check(self, spec: TensorSpec, array: Array, number: int) -> Array:
        name = spec.name or "input"
        if not fits(_wanted(spec), array.shape):
            expected, got = list(_wanted(spec)), list(array.shape)
            first = len(got) == 4 and fits(_wanted(spec), (got[0], *got[2:], got[1]))
            text = "shape does not match; its channels come first: move axis 1 to the end" if first else _NO_MATCH
            raise CalibrationError(text, sample=number, name=name, expected=expected, got=got)
        is_float = spec.type == TensorType.FLOAT32
        values = self._floats(name, array, number) if is_float else self._integers(spec, array, number)
        return admit(values, spec.type, _wanted(spec), name)

    def _floats(self, name: str, array: Array, number: int) -> Array:
        """Return the finite values of a float input, scaled if the calibration has a scaling."""
        if array.dtype.kind != "f" and (self._scaling is None or array.dtype.kind not in "iub"):
            raise CalibrationError(
                "holds no floats; mean and std scale stored integers to floats",
                sample=number,
                name=name,
                expected="float32",
                got=array.dtype,
            )
        with np.errstate(over="ignore"):
            values = array.astype(np.float32) if self._scaling is None else self._scaling.apply(array)
        finite = np.isfinite(values)
        if not finite.all():
            where = np.unravel_index(int(finite.argmin()), finite.shape)
            place = [int(i) for i in where]
            raise CalibrationError(f"holds {values[where]} at {place}", sample=number, name=name)
        return values

    def _integers(self, spec: TensorSpec, array: Array, number: int) -> Array:
        """Return the values of an input that is not float: all of them must fit its type."""
        carrier = CARRIER[TensorType(spec.type)]
        values = array.astype(carrier) if array.dtype.kind in "iub" and carrier.kind in "iub" else array
        if values.dtype != carrier or not np.array_equal(values, array):
            raise CalibrationError(
                "type does not match", sample=number, name=spec.name or "input", expected=carrier, got=array.dtype
            )
        return values


_NO_MATCH = "shape does not match"


def _samples_side_by_side(stacked: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
    lengths = [len(array) if array.ndim else 0 for array in stacked]
    if len(set(lengths)) > 1:
        raise CalibrationError("inputs have different numbers of samples", got=lengths)
    return zip(*stacked, strict=True)


def _wanted(spec: TensorSpec) -> tuple[int, ...]:
    """Return the shape that an input takes; -1 for dimensions that the file leaves open.

    An open first dimension is 1.
    """
    shape = spec.shape_signature or spec.shape
    return (1, *shape[1:]) if shape[:1] == (-1,) else shape


def _single(spec: TensorSpec) -> bool:
    """Return whether one row along axis 0 is a sample."""
    return _wanted(spec)[:1] == (1,)


Numbers: TypeAlias = "float | Sequence[float] | None"


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """The samples on which a finished model is compared, None for held-back ones, and the labels of all samples."""

    samples: Sequence[Sample] | None = None
    labels: Sequence[Any] | None = None

    def on(self, judging: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Any] | None]:
        """Return the samples to compare on, and their labels; `judging` if there are none of its own."""
        if self.samples is not None:
            return self.samples, self.labels
        return judging, labels_of(judging, self.labels)


def read_samples(
    model: Model,
    source: CalibrationSource | Calibration,
    mean: Numbers = None,
    std: Numbers = None,
    labels: Iterable[Any] | None = None,
) -> tuple[KeptSamples, list[Any] | None]:
    """Return the samples for a model, scaled if `mean` or `std` is given, and the labels of all samples.

    Only float inputs are scaled.

    Raises:
        InputError: The number of labels differs from the number of samples.
    """
    samples = KeptSamples(_scaled(model, source, mean, std))
    known = None if labels is None else list(labels)
    if known is not None and len(known) != len(samples):
        raise InputError("number of labels", expected=len(samples), got=len(known))
    return samples, known


def read_sequences(
    model: Model, source: CalibrationSource | Calibration, mean: Numbers = None, std: Numbers = None
) -> list[list[Sample]]:
    """Return the samples for a streaming model's step, as `read_samples`, by sequence (`Calibration.follow`)."""
    sequences = list[list[Sample]]()
    for sample, begins in _scaled(model, source, mean, std).follow():
        if begins:
            sequences.append([])
        sequences[-1].append(sample)
    return sequences


def _scaled(model: Model, source: CalibrationSource | Calibration, mean: Numbers, std: Numbers) -> Calibration:
    scaling = None
    if mean is not None or std is not None:
        scaling = Scaling.of(0.0 if mean is None else mean, 1.0 if std is None else std)
    return Calibration(model, source, scaling)


def read_labels(path: str | os.PathLike[str]) -> NDArray[np.int64]:
    """Return one class per sample: from an `.npy`, an `.npz`, or a text file with one number per line.

    An `.npz` holds one array, or several with one named `y`.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It does not hold one row of whole numbers.
    """
    labels = _read(Path(path))
    flat = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.ndim != 1 or flat.dtype.kind not in "iu":
        got = f"{labels.dtype} {list(labels.shape)}"
        raise InputError("holds no labels", name=str(path), expected="whole numbers, one per sample", got=got)
    return flat.astype(np.int64)


def _read(path: Path) -> Array:
    if path.suffix == ".npy":
        return load_array(path)
    if path.suffix == ".npz":
        with opened(path) as arrays:
            name = next(iter(arrays)) if len(arrays) == 1 else "y"
            if name not in arrays:
                raise InputError("has no array of labels", name=str(path), expected="y", got=", ".join(arrays))
            return arrays[name]
    try:
        return np.array([int(word) for word in read_bytes(path).decode().split()])
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise InputError(f"holds no labels ({error})", name=str(path)) from error
