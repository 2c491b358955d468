"""Samples of a one-shot iterator, kept on disk for repeated reading."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np

from tflq.typing import Array

Sample = tuple[Array, ...]


class Spool:
    """A temporary file that is deleted with the last reference to the spool. It is filled during the first reading."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._source: Iterator[Sample] = iter(samples)
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the spool)
        self._places: list[tuple[int, int]] = []  # where each sample begins, and how many arrays it has

    def __iter__(self) -> Iterator[Sample]:
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
