"""Hill climbing for samples that bring deeper accumulators to thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from agreement.inputs import Drawn, Sample
from agreement.sums import Census
from tflq import Interpreter


class Search:
    """Samples that a profile runs; a sample's score is the share of accumulators at thresholds."""

    def __init__(self, drawn: Drawn, profile: str) -> None:
        self._drawn = drawn
        self._deeper = drawn.products[1:]
        self._interpreter = Interpreter(
            model_content=drawn.model, profile=profile, experimental_preserve_all_tensors=True
        )
        self._interpreter.allocate_tensors()

    def found(self, start: Sequence[Sample], count: int, seconds: float) -> list[Sample]:
        """Return up to `count` samples, the last ones that were better than those before, within `seconds`."""
        ends, kept = monotonic() + seconds, []
        climbers = [(self.score(sample), sample) for sample in start]
        while climbers and self._deeper and monotonic() < ends:
            for number, (score, sample) in enumerate(climbers):
                changed = self._drawn.changed(sample)
                better = self.score(changed)
                if better > score:
                    climbers[number] = (better, changed)
                    kept.append(changed)
                if monotonic() > ends:
                    break
        return kept[-count:] if count else []

    def score(self, sample: Sample) -> float:
        """Return the shares of accumulators at thresholds, summed over the products behind the first."""
        for detail, value in zip(self._interpreter.get_input_details(), sample, strict=True):
            self._interpreter.set_tensor(detail["index"], value)
        self._interpreter.invoke()
        census = Census.of(self._deeper)
        census.add({p.x: self._interpreter.get_tensor(p.x) for p in self._deeper})
        return sum(near / max(1, every) for every, near in census.counted.values())
