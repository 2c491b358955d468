"""One cause for all failing operators, instead of one for each.

A kernel is one piece of code, so its cause must fit wherever it runs. If another operator of the same type and types of
tensors differs, causes are kept that reproduce these operators as well. If none of them differs, nothing follows: the
mistake may be in one layer only. Of the remaining causes, those that also reproduce divergent operators of other
kernels come first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflq.comparison.verification.dump import Dump
from tflq.comparison.verification.results import Located
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty, evidence_of
from tflq.diagnosis.hypotheses import Hypothesis, Kind, hypotheses
from tflq.diagnosis.localization import differing_elements, operator_alone
from tflq.diagnosis.mistakes import Device
from tflq.diagnosis.outcomes import results, score
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, view

#: Number of compared operators of the same kernel: differing and equal ones. Number of operators of other kernels.
_SIBLINGS, _OTHERS = 3, 3
#: An operator whose result has more elements is not compared.
_LARGEST = 1 << 20


def compare_elsewhere(
    explanation: Explanation, model: Model, dump: Dump, profile: Profile, operators: Sequence[Located]
) -> Explanation:
    """Return the explanation with its causes compared with other operators, if that can exclude some of them."""
    fitting = [cause for cause in explanation.causes if cause.exact]
    if not fitting or explanation.certainty == Certainty.CERTAIN:
        return explanation
    own = _kind(model, explanation.index)
    known = [o for o in operators if o.index != explanation.index and not o.assumed and _elements(o) <= _LARGEST]
    alike = _siblings([o for o in known if _kind(model, o.index) == own])
    others = _one_of_each(model, [o for o in known if o.differs and _kind(model, o.index) != own])
    same_kernel, beyond = (_alone(model, dump, profile, found) for found in (alike, others))
    if not any(sibling.differs for sibling in same_kernel.values()):
        same_kernel = {}
    causes = tuple(_compare(cause, same_kernel, beyond) if cause.exact else cause for cause in explanation.causes)
    evidence = explanation.evidence
    if any(cause.exact and not cause.not_at for cause in causes):
        more = evidence_of([(s.part, s.base) for s in same_kernel.values()], {})
        evidence = replace(
            evidence,
            telling=evidence.telling + more.telling,
            stimuli=evidence.stimuli + more.stimuli,
            far=max(evidence.far, more.far),
        )
    return replace(explanation, causes=causes, alike=tuple(same_kernel), beyond=tuple(beyond), evidence=evidence)


class Known:
    """An operator on a device's inputs, and the hypotheses that reproduce it."""

    def __init__(self, part: Part, profile: Profile) -> None:
        self.part = part
        self.base = part.run(part.plan(profile))
        self._profile = profile
        self._mistakes: Mapping[str, Device] | None = None

    @property
    def differs(self) -> bool:
        """True if the profile itself does not reproduce it."""
        matching, elements = score(self.base, self.part.got)
        return matching != elements

    def fits(self, hypothesis: Hypothesis) -> bool:
        """Return whether the hypothesis reproduces every bit here. An unknown name does not."""
        device = self._device(hypothesis)
        if device is None:
            return False
        matching, elements = score(results(device, self.part), self.part.got)
        return matching == elements

    def _device(self, hypothesis: Hypothesis) -> Device | None:
        if hypothesis.kind in (Kind.PROFILE, Kind.ARITHMETIC):
            return hypothesis.device
        if self._mistakes is None:
            found = (h for h in hypotheses(self.part, self._profile) if h.kind == Kind.MISTAKE)
            self._mistakes = {h.name: h.device for h in found}
        return self._mistakes.get(hypothesis.name)


def _compare(cause: Cause, alike: Mapping[int, Known], beyond: Mapping[int, Known]) -> Cause:
    """Return the cause with its members that fit most: first the operators of its kernel, then the others."""
    members = cause.members
    for sibling in alike.values():
        members = tuple(member for member in members if sibling.fits(member))
        if not members:
            first = cause.members[0]
            missed = tuple(index for index, other in alike.items() if not other.fits(first))
            return replace(cause, not_at=missed)
    explained = {member: tuple(i for i, other in beyond.items() if other.fits(member)) for member in members}
    most = max(explained.values(), key=len)
    kept = tuple(member for member in members if len(explained[member]) == len(most))
    return replace(cause, members=kept, also_at=most)


def _siblings(alike: Sequence[Located]) -> list[Located]:
    """Return differing and equal operators, those with most elements first; none if none differs."""
    ordered = sorted(alike, key=lambda o: (-differing_elements(o), -_elements(o)))
    divergent = [o for o in ordered if o.differs][:_SIBLINGS]
    same = [o for o in ordered if o.differences and not o.differs][:_SIBLINGS]
    return [*divergent, *same] if divergent else []


def _one_of_each(model: Model, operators: Sequence[Located]) -> list[Located]:
    """Return the operator of each kernel in which most elements differ."""
    most: dict[tuple[object, ...], Located] = {}
    for one in sorted(operators, key=lambda o: -differing_elements(o)):
        most.setdefault(_kind(model, one.index), one)
    return list(most.values())[:_OTHERS]


def _alone(model: Model, dump: Dump, profile: Profile, operators: Sequence[Located]) -> dict[int, Known]:
    known = {}
    for one in operators:
        try:
            known[one.index] = Known(operator_alone(model, dump, one.index, profile), profile)
        except TflqError:
            continue
    return known


def _elements(operator: Located) -> int:
    return sum(d.elements for d in operator.differences.values())


def _kind(model: Model, index: int) -> tuple[object, ...]:
    """Return the key by which operators share a kernel: code, number and types of operands."""
    op = view(model).op(index)
    types = tuple(None if spec is None else spec.type for spec in (*op.input_specs, *op.output_specs))
    return op.record.opcode_index, len(op.inputs), types
