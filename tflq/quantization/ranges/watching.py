"""Observations of float models, stored by quarter of the samples and shared by all candidates.

A float model runs once per quarter for all announced observers. The observations of several quarters are merged. Other
candidates, other turns and the last fit to all samples reuse most of them. An observer whose bins the first batch fixes
sees all samples in one run: the first batches of quarters are not alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from tflq.errors import CalibrationError
from tflq.progress import Progress
from tflq.quantization.calibration.quarters import Part, parts_of, quarters_of, whole
from tflq.quantization.processes import each
from tflq.quantization.ranges.observation import Observations, observe
from tflq.quantization.ranges.observers import Histogram, Observer
from tflq.quantization.runner import Runner, Sample
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.shared import Shared

#: A tensor, and a new observer as text.
_Wish: TypeAlias = "tuple[int, str]"


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A run of a float model on a quarter of the samples, for new observers."""

    part: Part
    begun: Mapping[_Wish, Observer]

    @property
    def observations(self) -> Observations:
        """The observers by tensor."""
        of: dict[int, list[Observer]] = {}
        for (tensor, _), observer in self.begun.items():
            of.setdefault(tensor, []).append(observer)
        return Observations({t: tuple(observers) for t, observers in of.items()})


class Watching:
    """Observers' states of float models that differ only in constants.

    Observers that several callers need should be announced by `expect` first: then one run serves all.
    """

    def __init__(self, shared: Shared, jobs: int = 1) -> None:
        self._shared, self.jobs = shared, jobs
        self._expected: dict[bytes, dict[_Wish, Observer]] = {}
        self._seen: dict[tuple[bytes, tuple[int, ...]], dict[_Wish, Observer]] = {}

    def expect(self, floats: FloatModel, begun: Observations) -> None:
        """Add these observers to the next run of a model."""
        announced = {w: o for w, o in _wishes(begun).items() if not _has_one_run(o)}
        self._expected.setdefault(self._shared.constants(floats.constants), {}).update(announced)

    def forget_expected(self) -> None:
        """Forget announced observers; later runs serve only requested ones."""
        self._expected.clear()

    def observe(
        self, floats: FloatModel, samples: Sequence[Sample], begun: Observations, progress: Progress | None = None
    ) -> Observations:
        """Return the state of the observers of `begun`, which are new, after all samples.

        Raises:
            CalibrationError: See `observe` of `ranges.observation`; samples are numbered in the order of the whole.
        """
        wishes = _wishes(begun)
        digest, parts = self._shared.constants(floats.constants), parts_of(samples)
        if any(_has_one_run(observer) for observer in wishes.values()):
            parts = (Part(whole(samples), quarters_of(samples)),)
        states_of_parts = [self._seen.setdefault((digest, part.quarters), {}) for part in parts]
        runs = [
            _Run(part, {w: o for w, o in {**self._expected.get(digest, {}), **wishes}.items() if w not in known})
            for part, known in zip(parts, states_of_parts, strict=True)
            if not wishes.keys() <= known.keys()
        ]
        for run in runs:
            self._together(floats, run)  # known before processes begin: all need it
        observed = each(lambda run, tell: self._made(floats, run, tell), runs, self.jobs, progress)
        for run, states in zip(runs, observed, strict=True):
            self._seen[digest, run.part.quarters].update(states)
        merged = {wish: reduce(_merge, [known[wish] for known in states_of_parts]) for wish in wishes}
        of = {t: tuple(merged[t, repr(observer)] for observer in observers) for t, observers in begun.of.items()}
        return Observations(of, len(samples))

    def _made(self, floats: FloatModel, run: _Run, progress: Progress | None) -> dict[_Wish, Observer]:
        """Return the final observers of a run."""
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
        """Return how many of the samples can run together without changing a bit of the observed tensors."""
        observed = run.observations.of
        tensors = (*observed, *(t for t in floats.graph.inputs if t not in observed))
        return self._shared.once(("together", tensors), lambda: Runner(floats.model, tensors).together(whole(run.part)))


def _wishes(begun: Observations) -> dict[_Wish, Observer]:
    return {(t, repr(observer)): observer for t, observers in begun.of.items() for observer in observers}


def _has_one_run(observer: Observer) -> bool:
    return isinstance(observer, Histogram) and observer.is_fixed_by_first_batch


def _merge(first: Observer, second: Observer) -> Observer:
    return first.merge(second)
