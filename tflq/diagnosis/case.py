"""One operator of a device's dump by itself: its inputs and results in each sample, and what the profile computes.

All parts of a diagnosis that look at one operator share its case, so that it is cut out and computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tflq.comparison.evidence.dumps import Dump
from tflq.diagnosis.hypotheses import Hypothesis, HypothesisKind, Results, hypotheses, reproduces, score
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes import Device
from tflq.engine.api.many import Part, reads
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model


@dataclass(frozen=True, eq=False)
class OperatorCase:
    """Operator `index` under a profile, in the samples of a dump. What is computed is kept.

    Samples whose operator has no constants of its own share plans. Parts and results raise a TflqError if an input is
    neither in the dump nor computable, or if the profile refuses the operator.
    """

    model: Model
    dumps: tuple[Dump, ...]
    index: int
    profile: Profile
    _parts: dict[int, Part] = field(default_factory=dict, init=False, repr=False)
    _results: dict[int, Results] = field(default_factory=dict, init=False, repr=False)
    _mistakes: dict[int, Mapping[str, Device]] = field(default_factory=dict, init=False, repr=False)

    def part(self, sample: int = 0) -> Part:
        """Return the operator alone on the inputs of a sample, with the dump's results."""
        if sample not in self._parts:
            part = operator_alone(self.model, self.dumps[sample], self.index, self.profile)
            count = len(reads(self.model, (self.index,)))
            if len(part.inputs) == count:
                first = next((one for one in self._parts.values() if len(one.inputs) == count), part)
                part = replace(part, model=first.model, plans=first.plans)
            self._parts[sample] = part
        return self._parts[sample]

    def results(self, sample: int = 0) -> Results:
        """Return the profile's own results in a sample."""
        if sample not in self._results:
            part = self.part(sample)
            self._results[sample] = part.run(part.plan(self.profile))
        return self._results[sample]

    @property
    def parts(self) -> tuple[Part, ...]:
        """The operator alone, by sample."""
        return tuple(map(self.part, range(len(self.dumps))))

    @property
    def pairs(self) -> list[tuple[Part, Results]]:
        """The operator alone with the profile's results, by sample."""
        return [(part, self.results(sample)) for sample, part in enumerate(self.parts)]

    @cached_property
    def is_computable(self) -> bool:
        """True if the profile computes every sample."""
        try:
            return bool(self.pairs)
        except TflqError:
            return False

    @cached_property
    def score(self) -> tuple[int, int]:
        """The number of elements in all samples that the profile reproduces, and the number of all."""
        matching, elements = zip(*(score(values, part.got) for part, values in self.pairs), strict=True)
        return sum(matching), sum(elements)

    @property
    def differs(self) -> bool:
        """True if the profile does not reproduce every bit."""
        return self.score[0] != self.score[1]

    def fits(self, hypothesis: Hypothesis) -> bool:
        """Return whether a hypothesis, of this operator or another, reproduces every bit of all samples.

        A mistake is the one with the same name here; an unknown name reproduces nothing.
        """
        if not self.is_computable:
            return False
        for sample, part in enumerate(self.parts):
            is_profile = hypothesis.kind in (HypothesisKind.PROFILE, HypothesisKind.ARITHMETIC)
            device = hypothesis.device if is_profile else self._named(sample).get(hypothesis.name)
            if device is None or not reproduces(device, part):
                return False
        return True

    def _named(self, sample: int) -> Mapping[str, Device]:
        if sample not in self._mistakes:
            found = (h for h in hypotheses(self.part(sample), self.profile) if h.kind == HypothesisKind.MISTAKE)
            self._mistakes[sample] = {h.name: h.device for h in found}
        return self._mistakes[sample]
