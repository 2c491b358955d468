"""Runtimes compared on the same inputs, one sample after another: nothing is kept but counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agreement.devices import Device
from agreement.inputs import Sample
from agreement.running import Array, Forms, Running, Stopped
from tflq.model.ir import CARRIER, GraphView


@dataclass
class Result:
    """Counts of one runtime: inputs, elements, by tensor those that differ; or the problem that ended it.

    `first` is the first difference: the number of the input, and the tensor.
    """

    device: Device
    version: str = ""
    problem: str = ""
    inputs: int = 0
    seconds: float = 0.0
    compared: int = 0
    differing: dict[int, int] = field(default_factory=dict)
    first: tuple[int, int] | None = None

    def add(self, number: int, tensors: Sequence[int], expected: Sequence[Array], got: Sequence[Array]) -> None:
        """Count the elements of one sample, bit by bit."""
        self.inputs += 1
        for tensor, one, other in zip(tensors, expected, got, strict=True):
            self.compared += one.size
            if one.tobytes() == other.tobytes():
                continue
            size = one.dtype.itemsize
            bits = (np.frombuffer(value.tobytes(), np.uint8).reshape(-1, size) for value in (one, other))
            apart = int(np.count_nonzero((next(bits) != next(bits)).any(axis=1)))
            self.differing[tensor] = self.differing.get(tensor, 0) + apart
            self.first = self.first or (number, tensor)

    def differs_in(self, tensors: Iterable[int]) -> int:
        """Return the number of elements that differ in some tensors."""
        return sum(self.differing.get(tensor, 0) for tensor in tensors)


class Lockstep:
    """Runtimes on one model: the first that runs is compared with all others.

    A runtime gets no more inputs after `budget` seconds of runs, if that is not 0. `first` is the name of the one that
    the others are compared with; empty if none runs.
    """

    def __init__(self, chosen: Sequence[Device], model: Path, forms: Forms, limit: float, budget: float) -> None:
        self.results, self._running, self._budget = [Result(device) for device in chosen], {}, budget
        for result in self.results:
            if result.device.absent:
                result.problem = result.device.absent
                continue
            try:
                running = Running(result.device, model, forms, limit)
            except Stopped as reason:
                result.problem = str(reason)
                continue
            self._running[result.device.name], result.version = running, running.name
        self.first = next(iter(self._running), "")

    def run(self, number: int, sample: Sample, tensors: Sequence[int]) -> Mapping[int, Array] | None:
        """Compare one sample; return the first runtime's values, or None if it gives no more."""
        expected: list[Array] = []
        for result in self.results:
            made = self._made(result, number, sample)
            if made is None and result.device.name == self.first:
                return None
            if made is not None:
                expected = expected or made
                result.add(number, tensors, expected, made)
        return dict(zip(tensors, expected, strict=True)) if expected else None

    def _made(self, result: Result, number: int, sample: Sample) -> list[Array] | None:
        """Return a runtime's outputs; None if it does not run, or not any more."""
        running = self._running.get(result.device.name)
        if running is None or (self._budget and running.spent > self._budget):
            return None
        try:
            made = running.run(sample)
        except Stopped as reason:
            result.problem = f"input {number}: {reason}"
            del self._running[result.device.name]
            return None
        result.seconds = running.spent
        return made

    def __enter__(self) -> Lockstep:
        """Return the runtimes."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes."""
        for running in self._running.values():
            running.close()


def forms_of(graph: GraphView) -> list[tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return type and shape of each output of a graph."""
    specs = [graph.tensors[tensor] for tensor in graph.outputs]
    return [(np.dtype(CARRIER[spec.type]), tuple(int(size) for size in spec.shape)) for spec in specs]
