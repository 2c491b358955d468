"""Calibration samples kept at hand, and their quarters: three to fit to, one to judge by.

Remarks about calibration data, as far as the samples alone show what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar, overload

import numpy as np

from tflq.model.ir import Model, view
from tflq.quantization.frontier import Sample, SampleStore

Label = TypeVar("Label")

#: One of this many samples is held back; each turn holds back another.
TURNS = 4
#: With this few samples, none is held back: they are judged on the samples they were fitted to.
FEW = 8
#: Bytes of samples that memory keeps; the rest go to temporary files.
MEMORY = 128 << 20


class KeptSamples(Sequence[Sample]):
    """Samples by number, read once: images are decoded and values are checked only once."""

    def __init__(self, samples: Iterable[Sample], memory: int = MEMORY) -> None:
        self._first: list[Sample] = []
        self._rest = SampleStore(0)
        self._count = size = 0
        for sample in samples:
            size += sum(array.nbytes for array in sample.values())
            if size <= memory:
                self._first.append(dict(sample))
            else:
                self._spill(sample)
            self._count += 1

    def _spill(self, sample: Sample) -> None:
        for tensor, array in sample.items():
            if tensor not in self._rest:
                self._rest.begin(tensor, array.nbytes)
            self._rest.append(tensor, array)
        self._tensors = tuple(sample)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> Sample: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Sample]: ...

    def __getitem__(self, number: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(number, slice):
            return [self[k] for k in range(self._count)[number]]
        number = range(self._count)[number]
        if number < len(self._first):
            return self._first[number]
        return {tensor: self._rest.get(tensor, number - len(self._first)) for tensor in self._tensors}


@dataclass(frozen=True, slots=True, eq=False)
class Quarter(Sequence[Sample]):
    """Some quarters of samples: sample k is in quarter 3 - k % 4, which is held back in the turn of that number."""

    samples: Sequence[Sample]
    quarters: tuple[int, ...]

    @property
    def numbers(self) -> list[int]:
        """The numbers of these samples, in order."""
        return [k for k in range(len(self.samples)) if TURNS - 1 - k % TURNS in self.quarters]

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Sample]:
        return (self.samples[k] for k in self.numbers)

    @overload
    def __getitem__(self, number: int) -> Sample: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Sample]: ...

    def __getitem__(self, number: int | slice) -> Sample | Sequence[Sample]:
        numbers = self.numbers[number]
        return self.samples[numbers] if isinstance(numbers, int) else [self.samples[k] for k in numbers]


def parted(samples: Sequence[Sample], turn: int = 0) -> tuple[Sequence[Sample], Sequence[Sample]]:
    """Return samples to fit to, and a quarter to judge by; both are all samples if there are few."""
    if len(samples) < FEW:
        return samples, samples
    return Quarter(samples, tuple(q for q in range(TURNS) if q != turn)), Quarter(samples, (turn,))


def labels_of(samples: Sequence[Sample], labels: Sequence[Label] | None) -> Sequence[Label] | None:
    """Return the labels of a part, taken from labels for all samples; None if there are none."""
    return [labels[k] for k in samples.numbers] if labels is not None and isinstance(samples, Quarter) else labels


def parts_of(samples: Sequence[Sample]) -> tuple[Quarter, ...]:
    """Return the quarters of the samples, one per part; few samples are one part."""
    every = whole(samples)
    if len(every) < FEW:
        return (Quarter(every, tuple(range(TURNS))),)
    return tuple(Quarter(every, (quarter,)) for quarter in quarters_of(samples))


def quarters_of(samples: Sequence[Sample]) -> tuple[int, ...]:
    """Return the numbers of the quarters that the samples consist of."""
    return samples.quarters if isinstance(samples, Quarter) else tuple(range(TURNS))


def whole(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return all samples that a part belongs to, held back or not; other samples unchanged."""
    return samples.samples if isinstance(samples, Quarter) else samples


#: Fewer samples than this make ranges and forecasts unsteady.
FEW_SAMPLES = 32
#: Samples that are looked at for repeats and ranges.
LOOKED_AT = 256
#: Whole numbers up to at least this one are probably pixels.
_BRIGHT = 128.0


def remarks_about(model: Model, samples: Sequence[Sample], *, has_scaling: bool = False) -> Iterator[str]:
    """Yield what is wrong with calibration data: too few, repeated, constant, or numbers not scaled."""
    seen = list(islice(samples, LOOKED_AT))
    if (count := len(samples)) < FEW_SAMPLES:
        yield f"few samples: {count}; {FEW_SAMPLES} or more make ranges and forecasts steady, 100 to 500 are usual"
    distinct = len({tuple(sample[t].tobytes() for t in sorted(sample)) for sample in seen})
    if distinct == 1 and len(seen) > 1:
        yield f"constant: all of the first {len(seen)} samples are equal"
    elif 2 * distinct <= len(seen):
        yield f"repeated: {distinct} of the first {len(seen)} samples are distinct"
    for tensor in () if has_scaling else view(model).inputs:
        yield from _range_remarks(view(model).tensors[tensor].name or "input", [s[tensor] for s in seen])


def _range_remarks(name: str, values: Sequence[Any]) -> Iterator[str]:
    """Yield that an input is 0 to 255 as pixels are, without a mean and a standard deviation."""
    if not values or values[0].dtype != np.float32:
        return
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    if low >= 0 and _BRIGHT <= high <= 255 and all(bool(np.all(v == np.rint(v))) for v in values):
        yield (
            f"range: {name} holds whole numbers {low:g} to {high:g}, as pixels do; unless the model was trained on "
            "these, give its --mean and --std (--std 255 for 0 to 1, --mean 127.5 --std 127.5 for -1 to 1)"
        )
