"""Which of several configurations is best, judged without labels on samples that none of them has seen.

No fixed configuration is safe: ranges that rescue one model ruin another. What is compared is what users get: outputs
on held-back calibration samples. Where the float model's first output is a distribution over classes, the mean
KL divergence to it ranks; else the output's signal-to-noise ratio does. Configurations whose divergence is within
TIE of the least are ranked by the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tflq.quantization.compare import Comparison
from tflq.quantization.recipe import Methods
from tflq.quantization.runner import Sample

#: Divergences that differ by less than this share count as equal.
TIE = 0.05
#: Every so many samples, one is held back.
EVERY = 4
#: So few samples that none are held back: they are judged by what they were fitted to.
FEW = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A configuration and how its model did on the held-back samples; `error` says why there is none."""

    methods: Methods
    comparison: Comparison | None
    error: str = ""

    @property
    def divergence(self) -> float:
        """Mean KL divergence to the float model's distribution, nats; NaN where that gives none."""
        agreement = None if self.comparison is None else self.comparison.agreement
        return math.nan if agreement is None else agreement.divergence / agreement.samples

    @property
    def sqnr(self) -> float:
        """Of the outputs, dB; -inf without a model."""
        return -math.inf if self.comparison is None else self.comparison.sqnr


def ranked(candidates: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """The candidates, the best first; those without a model are last."""
    divergences = [c.divergence for c in candidates if c.comparison is not None]
    if not divergences or any(map(math.isnan, divergences)):
        return tuple(sorted(candidates, key=lambda c: -c.sqnr))
    bound = min(divergences) * (1 + TIE)

    def place(candidate: Ranked) -> tuple[int, float]:
        if candidate.comparison is None:
            return 2, 0.0
        if candidate.divergence <= bound:
            return 0, -candidate.sqnr
        return 1, candidate.divergence

    return tuple(sorted(candidates, key=place))


class Part:
    """Those of re-iterable samples that are held back for judging, or the others."""

    def __init__(self, samples: Iterable[Sample], *, held_back: bool) -> None:
        self._samples, self._held_back = samples, held_back

    def __iter__(self) -> Iterator[Sample]:
        return (s for i, s in enumerate(self._samples) if (i % EVERY == EVERY - 1) == self._held_back)


def parted(samples: Iterable[Sample]) -> tuple[Iterable[Sample], Iterable[Sample]]:
    """Samples to fit to, and samples to judge by; both are all of them where there are few."""
    if sum(1 for _ in islice(samples, FEW)) < FEW:
        return samples, samples
    return Part(samples, held_back=False), Part(samples, held_back=True)
