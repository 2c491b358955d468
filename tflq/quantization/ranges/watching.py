"""What observers see of float models, kept by quarter of the samples and shared by all who ask for it.

A float model is run on a quarter once for all observers that are expected to be asked for, whichever candidate asks
first; what they hold of several quarters is merged. Other candidates, other turns and the last fit to all samples find
most of it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from tflq.errors import CalibrationError
from tflq.quantization.calibration.quarters import Part, parts_of, whole
from tflq.quantization.processes import each
from tflq.quantization.progress import Progress
from tflq.quantization.ranges.observation import Observations, observe
from tflq.quantization.ranges.observers import Observer
from tflq.quantization.runner import Runner, Sample
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.shared import Shared

#: A tensor, and an observer before it saw anything, as text.
_Wish: TypeAlias = "tuple[int, str]"


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A run of a float model on a quarter of the samples, for observers that have seen nothing of it."""

    part: Part
    begun: Mapping[_Wish, Observer]

    @property
    def observations(self) -> Observations:
        """Its observers by tensor."""
        of: dict[int, list[Observer]] = {}
        for (tensor, _), observer in self.begun.items():
            of.setdefault(tensor, []).append(observer)
        return Observations({t: tuple(observers) for t, observers in of.items()})


class Watching:
    """Observers' states of float models that differ in constants alone.

    What many ask for at once is best announced by `expect` first: then one run serves all.
    """

    def __init__(self, shared: Shared, jobs: int = 1) -> None:
        self._shared, self._jobs = shared, jobs
        self._expected: dict[bytes, dict[_Wish, Observer]] = {}
        self._seen: dict[tuple[bytes, tuple[int, ...]], dict[_Wish, Observer]] = {}

    def expect(self, floats: FloatModel, begun: Observations) -> None:
        """Let the next run of a model serve these observers, too."""
        self._expected.setdefault(self._shared.constants(floats.constants), {}).update(_wishes(begun))

    def forget_expected(self) -> None:
        """From now on runs serve what is asked for, and nothing else."""
        self._expected.clear()

    def observe(
        self, floats: FloatModel, samples: Sequence[Sample], begun: Observations, progress: Progress | None = None
    ) -> Observations:
        """Return what the observers of `begun`, which saw nothing yet, hold after all samples.

        Raises:
            CalibrationError: As `observe` of `ranges.observation`, samples numbered as they come in the whole.
        """
        wishes = _wishes(begun)
        digest, parts = self._shared.constants(floats.constants), parts_of(samples)
        states_of_parts = [self._seen.setdefault((digest, part.quarters), {}) for part in parts]
        runs = [
            _Run(part, {w: o for w, o in {**self._expected.get(digest, {}), **wishes}.items() if w not in known})
            for part, known in zip(parts, states_of_parts, strict=True)
            if not wishes.keys() <= known.keys()
        ]
        for run in runs:
            self._together(floats, run)  # known before processes begin, which all need it
        observed = each(lambda run, tell: self._made(floats, run, tell), runs, self._jobs, progress)
        for run, states in zip(runs, observed, strict=True):
            self._seen[digest, run.part.quarters].update(states)
        merged = {wish: reduce(_merged, [known[wish] for known in states_of_parts]) for wish in wishes}
        of = {t: tuple(merged[t, repr(observer)] for observer in observers) for t, observers in begun.of.items()}
        return Observations(of, len(samples))

    def _made(self, floats: FloatModel, run: _Run, progress: Progress | None) -> dict[_Wish, Observer]:
        """Return what a run's observers hold at its end."""
        begun, together = run.observations, self._together(floats, run)
        try:
            after = observe(floats.model, run.part, begun, progress, together)
        except CalibrationError as error:
            if error.sample is None:
                raise
            raise CalibrationError(error.reason, sample=run.part.numbers[error.sample], name=error.name) from error
        return {
            (t, repr(observer)): state
            for t, observers in begun.of.items()
            for observer, state in zip(observers, after.of[t], strict=True)
        }

    def _together(self, floats: FloatModel, run: _Run) -> int:
        """Return how many of the samples may run together without changing a bit of what is observed."""
        observed = run.observations.of
        tensors = (*observed, *(t for t in floats.graph.inputs if t not in observed))
        return self._shared.once(("together", tensors), lambda: Runner(floats.model, tensors).together(whole(run.part)))


def _wishes(begun: Observations) -> dict[_Wish, Observer]:
    return {(t, repr(observer)): observer for t, observers in begun.of.items() for observer in observers}


def _merged(first: Observer, second: Observer) -> Observer:
    return first.merge(second)
