"""One sample at a time, checked against the model's inputs, from any kind of source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from tflq.comparison.verification.scaling import Scaling
from tflq.display import display_by
from tflq.engine.interpreter.arrays import admit, fits
from tflq.errors import CalibrationError
from tflq.model.ir import CARRIER, Model, TensorSpec, TensorType
from tflq.quantization.calibration.files import opened
from tflq.quantization.calibration.names import InputNames
from tflq.quantization.calibration.spool import Spool
from tflq.typing import Array

#: One sample: arrays in input order, by name or by tensor index, the batch dimension included; a bare array if there is
#: only one input.
SampleSource: TypeAlias = "Sequence[ArrayLike] | Mapping[str, ArrayLike] | Mapping[int, ArrayLike] | Array"
#: A path (.npz, .npy, folder), stacked arrays, an iterable of samples, or a function that returns one.
CalibrationSource: TypeAlias = (
    "str | os.PathLike[str] | Array | Mapping[str, ArrayLike] | Iterable[SampleSource] | "
    "Callable[[], Iterable[SampleSource]]"
)


@display_by("quantize.cards:calibration_card")
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
            return lambda: opened(path, names, bgr=bgr)
        if isinstance(source, Mapping):
            stacked = names.ordered(source, None)
            return lambda: _side_by_side(stacked)
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


def _side_by_side(stacked: Sequence[Array]) -> Iterator[tuple[Array, ...]]:
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
