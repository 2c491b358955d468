"""What observers see of float models, kept by quarter of the samples and shared by all who ask for it.

A float model is run on a quarter once for all observers that are expected to be asked for, whichever candidate asks
first; what they hold of several quarters is merged. Other candidates, other turns and the last fit to all samples find
most of it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from tflq.errors import CalibrationError
from tflq.quantization.calibration.quarters import Part, parts_of, whole
from tflq.quantization.progress import Progress
from tflq.quantization.ranges.observation import Observations, observe
from tflq.quantization.ranges.observers import Observer
from tflq.quantization.runner import Runner, Sample
from tflq.quantization.scheme.float_graph import FloatModel
from tflq.quantization.shared import Shared

#: A tensor, and an observer before it saw anything, as text.
_Wish: TypeAlias = "tuple[int, str]"


class Watching:
    """Observers' states of float models that differ in constants alone.

    What many ask for at once is best announced by `expect` first: then one run serves all.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
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
        states = [self._part(floats, part, wishes, progress) for part in parts_of(samples)]
        merged = {wish: reduce(_merged, [state[wish] for state in states]) for wish in wishes}
        of = {t: tuple(merged[t, repr(observer)] for observer in observers) for t, observers in begun.of.items()}
        return Observations(of, len(samples))

    def _part(
        self, floats: FloatModel, part: Part, wishes: dict[_Wish, Observer], progress: Progress | None
    ) -> dict[_Wish, Observer]:
        """Return the states of one quarter, those that are wished for among them."""
        digest = self._shared.constants(floats.constants)
        states = self._seen.setdefault((digest, part.quarters), {})
        if wishes.keys() <= states.keys():
            return states
        missing = {w: o for w, o in {**self._expected.get(digest, {}), **wishes}.items() if w not in states}
        of: dict[int, list[_Wish]] = {}
        for wish in missing:
            of.setdefault(wish[0], []).append(wish)
        begun = Observations({t: tuple(missing[w] for w in ws) for t, ws in of.items()})
        tensors = (*of, *(t for t in floats.graph.inputs if t not in of))
        runner, every = Runner(floats.model, tensors), whole(part)
        together = self._shared.once(("together", tensors), lambda: runner.together(every))
        try:
            after = observe(floats.model, part, begun, progress, together)
        except CalibrationError as error:
            if error.sample is None:
                raise
            raise CalibrationError(error.reason, sample=part.numbers[error.sample], name=error.name) from error
        states.update({wish: o for t, ws in of.items() for wish, o in zip(ws, after.of[t], strict=True)})
        return states


def _wishes(begun: Observations) -> dict[_Wish, Observer]:
    return {(t, repr(observer)): observer for t, observers in begun.of.items() for observer in observers}


def _merged(first: Observer, second: Observer) -> Observer:
    return first.merge(second)
