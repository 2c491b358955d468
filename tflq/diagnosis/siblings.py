"""One cause for all failing operators, instead of one for each.

A kernel is one piece of code, so its cause must fit wherever it runs. If another operator of the same type and types of
tensors differs, causes are kept that reproduce these operators as well. If none of them differs, nothing follows: the
mistake may be in one layer only. Of the remaining causes, those that also reproduce divergent operators of other
kernels come first.

Causes that many operators or cases share, as values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.comparison.results import Located
from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.certainty import Certainty, evidence_of
from tflq.diagnosis.localization import differing_elements
from tflq.model.ir import Model, view

#: Number of compared operators of the same kernel: differing and equal ones. Number of operators of other kernels.
_SIBLINGS, _OTHERS = 3, 3
#: An operator whose result has more elements is not compared.
_LARGEST = 1 << 20


def compare_elsewhere(explanation: Explanation, case: OperatorCase, operators: Sequence[Located]) -> Explanation:
    """Return the explanation of a case with its causes compared with other operators of the case's first sample.

    It is unchanged if that can exclude none of them.
    """
    model = case.model
    fitting = [cause for cause in explanation.causes if cause.exact]
    if not fitting or explanation.certainty == Certainty.CERTAIN:
        return explanation
    own = _kind(model, explanation.index)
    known = [o for o in operators if o.index != explanation.index and not o.assumed and _elements(o) <= _LARGEST]
    alike = _siblings([o for o in known if _kind(model, o.index) == own])
    others = _one_of_each(model, [o for o in known if o.differs and _kind(model, o.index) != own])
    same_kernel, beyond = (_cases(case, found) for found in (alike, others))
    if not any(sibling.differs for sibling in same_kernel.values()):
        same_kernel = {}
    causes = tuple(_compare(cause, same_kernel, beyond) if cause.exact else cause for cause in explanation.causes)
    evidence = explanation.evidence
    if any(cause.exact and not cause.not_at for cause in causes):
        more = evidence_of([pair for sibling in same_kernel.values() for pair in sibling.pairs], {})
        evidence = replace(
            evidence,
            telling=evidence.telling + more.telling,
            stimuli=evidence.stimuli + more.stimuli,
            far=max(evidence.far, more.far),
        )
    return replace(explanation, causes=causes, alike=tuple(same_kernel), beyond=tuple(beyond), evidence=evidence)


def _compare(cause: Cause, alike: Mapping[int, OperatorCase], beyond: Mapping[int, OperatorCase]) -> Cause:
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


def _cases(of: OperatorCase, operators: Sequence[Located]) -> dict[int, OperatorCase]:
    cases = (OperatorCase(of.model, of.dumps[:1], one.index, of.profile) for one in operators)
    return {case.index: case for case in cases if case.is_computable}


def _elements(operator: Located) -> int:
    return sum(d.elements for d in operator.differences.values())


def _kind(model: Model, index: int) -> tuple[object, ...]:
    """Return the key by which operators share a kernel: code, number and types of operands."""
    op = view(model).op(index)
    types = tuple(None if spec is None else spec.type for spec in (*op.input_specs, *op.output_specs))
    return op.record.opcode_index, len(op.inputs), types


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The cases of one kernel that a cause reproduces, bit by bit.

    `reproduced` of `cases` are reproduced, among them `failing` of `all_failing` that differ from the profile. `bits`
    are the bits of evidence of the failing ones, `needed` those that a certain cause needs.
    """

    op: str
    types: str
    reproduced: int
    cases: int
    failing: int
    all_failing: int
    bits: int = 0
    needed: int = 0

    @property
    def is_whole(self) -> bool:
        """True if every case is reproduced."""
        return self.reproduced == self.cases

    @property
    def is_certain(self) -> bool:
        """True if every case is reproduced, and with enough evidence."""
        return self.is_whole and self.bits >= self.needed


@dataclass(frozen=True, slots=True)
class JointCause:
    """One cause of failing cases of one operator or of several.

    `others` reproduce as much. `names` are the failing cases that it reproduces, `failing` counts the failing cases of
    their groups. `kernels` have its evidence, if it was compared with every case; else it was with some of each group.
    """

    name: str
    others: tuple[str, ...]
    groups: int
    failing: int
    operators: tuple[str, ...]
    names: tuple[str, ...]
    kernels: tuple[Reproduced, ...] = ()

    @property
    def cases(self) -> int:
        """Number of failing cases that it reproduces."""
        return len(self.names)

    @property
    def certainty(self) -> Certainty | None:
        """Certain: every case of every kernel is reproduced with enough evidence, and by nothing else."""
        if not self.kernels:
            return None
        if self.others or not all(kernel.is_certain for kernel in self.kernels):
            return Certainty.LIKELY
        return Certainty.CERTAIN

    @property
    def first(self) -> str:
        """The case to look at."""
        return self.names[0]


@dataclass(frozen=True, slots=True)
class Joint:
    """Arithmetics that were compared with every case, by the failing cases that they reproduce, most first.

    `nearest` are the kernels without one, each with the nearest arithmetic and what it reproduces. `fault` is the
    reason why something was not searched.
    """

    causes: tuple[JointCause, ...] = ()
    nearest: tuple[tuple[str, Reproduced], ...] = ()
    fault: str = ""

    @property
    def faults(self) -> tuple[str, ...]:
        """The fault, if there is one, as a sentence."""
        return (f"an arithmetic for many operators could not be searched: {self.fault}",) if self.fault else ()


#: No arithmetic was searched, or none was found.
NONE = Joint()
