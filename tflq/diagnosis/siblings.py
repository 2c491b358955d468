"""What other operators of the same type say: a kernel is one piece of code, so its cause has to fit wherever it runs.

Where few elements of the first divergent operator differ, several causes may reproduce it. Those are kept that
reproduce the other operators of its type and types of tensors, too, if any does. Nothing is said where none of these
differs: the mistake may then be in one layer only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tflq.diagnosis.explanation import Cause, Explanation
from tflq.diagnosis.hypotheses import Hypothesis, Kind, hypotheses
from tflq.diagnosis.localization import operator_alone
from tflq.diagnosis.mistakes import Device
from tflq.diagnosis.outcomes import results, score
from tflq.errors import TflqError
from tflq.ir import Model
from tflq.profiles import Profile
from tflq.surgery.part import Part
from tflq.verification.dump import Dump
from tflq.verification.results import Located

#: So many siblings that differ are looked at, and so many that do not, those with most elements first; and only where
#: fewer elements than this differ.
_SIBLINGS, _ENOUGH = 3, 24


def held_elsewhere(
    explanation: Explanation, model: Model, dump: Dump, profile: Profile, operators: Sequence[Located]
) -> Explanation:
    """The explanation with its causes held against other divergent operators of the same type, where that may help."""
    differing = explanation.elements - explanation.matching
    if not explanation.fitting or (len(explanation.fitting) == 1 and differing >= _ENOUGH):
        return explanation
    parts = dict(_siblings(model, dump, profile, operators, explanation.index))
    if not any(apart for _, apart in parts.values()):
        return explanation
    more = sum(apart for _, apart in parts.values())
    known = {index: _Known(part, profile) for index, (part, _) in parts.items()}
    causes = tuple(_held(cause, known) if cause.exact else cause for cause in explanation.causes)
    borne = any(cause.exact and not cause.not_at for cause in causes)
    return replace(explanation, causes=causes, alike=tuple(parts), seen_alike=more if borne else 0)


class _Known:
    """An operator of the same type, and the devices that are known for it by name."""

    def __init__(self, part: Part, profile: Profile) -> None:
        self.part = part
        self._profile = profile
        self._mistakes: Mapping[str, Device] | None = None

    def fits(self, hypothesis: Hypothesis) -> bool:
        """Whether the hypothesis reproduces every bit here. One that is not known here, by its name, does not."""
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


def _held(cause: Cause, known: Mapping[int, _Known]) -> Cause:
    """The cause with those of its members that fit everywhere; if none does, with the siblings that none fits."""
    members = cause.members
    for sibling in known.values():
        members = tuple(member for member in members if sibling.fits(member))
        if not members:
            break
    if members:
        return replace(cause, members=members)
    first = cause.members[0]
    return replace(cause, not_at=tuple(index for index, sibling in known.items() if not sibling.fits(first)))


def _siblings(
    model: Model, dump: Dump, profile: Profile, operators: Sequence[Located], index: int
) -> Iterator[tuple[int, tuple[Part, int]]]:
    """Other operators like `index`, of which one at least differs: each alone, and how many of its elements do."""
    own = _kind(model, index)
    alike = [o for o in operators if o.index != index and not o.assumed and _kind(model, o.index) == own]
    alike.sort(key=lambda o: (-_differing(o), -sum(d.elements for d in o.differences.values())))
    divergent = [o for o in alike if o.differs][:_SIBLINGS]
    same = [o for o in alike if o.differences and not o.differs][:_SIBLINGS]
    for other in (*divergent, *same) if divergent else ():
        try:
            part = operator_alone(model, dump, other.index, profile)
            matching, elements = score(part.run(part.plan(profile)), part.got)
        except TflqError:
            continue
        yield other.index, (part, elements - matching)


def _differing(operator: Located) -> int:
    return sum(d.differing for d in operator.differences.values())


def _kind(model: Model, index: int) -> tuple[object, ...]:
    """By what operators take the same kernel: code, number and types of operands."""
    graph = model.subgraphs[0]
    operator = graph.operators[index]
    tensors = [graph.tensors[t] if t >= 0 else None for t in (*operator.inputs, *operator.outputs)]
    types = tuple(None if spec is None else spec.type for spec in tensors)
    return operator.opcode_index, len(operator.inputs), types
