"""Causes of one operator's differing bits, the facts about them, and the remaining doubts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from tflq.diagnosis.certainty import Certainty, Evidence
from tflq.diagnosis.faults.defect import Defect
from tflq.diagnosis.hypotheses import Hypothesis, Kind
from tflq.diagnosis.outcomes import Fault
from tflq.diagnosis.placement import Places


class CauseVerdict(str, Enum):
    """The certainty of the explanation of one operator's difference."""

    SAME = "same"
    EXPLAINED = "explained"  # by one cause, which is certain
    LIKELY = "likely"  # by one cause, with doubts
    UNTOLD = "cannot tell"  # by one cause, for which the dump has too little evidence
    AMBIGUOUS = "ambiguous"  # several causes reproduce every bit
    PARTIAL = "partial"  # the best one leaves at most half of the elements unexplained that the profile does
    UNDETERMINED = "undetermined"


#: Verdicts by the certainty of a fault that is no arithmetic.
_BY_DEFECT = {
    Certainty.CERTAIN: CauseVerdict.EXPLAINED,
    Certainty.LIKELY: CauseVerdict.LIKELY,
    Certainty.NONE: CauseVerdict.UNTOLD,
}


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Hypotheses with the same bits on the dump's input. Exact ones also agree on its values in another order.

    `matching` of the dump's `elements` are reproduced. The first member is the most probable.

    `is_proved`: all members are proved to be the same function of the operator's inputs.
    """

    members: tuple[Hypothesis, ...]
    matching: int
    elements: int
    not_at: tuple[int, ...] = ()  # other operators of the same kernel that it does not reproduce
    also_at: tuple[int, ...] = ()  # other divergent operators that it reproduces
    is_proved: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of the most probable member."""
        return self.members[0].kind

    @property
    def name(self) -> str:
        """The name of the most probable member."""
        return self.members[0].name

    @property
    def also(self) -> tuple[str, ...]:
        """The other names."""
        return tuple(h.name for h in self.members[1:])

    @property
    def is_a_profile(self) -> bool:
        """True if a profile is among the members."""
        return any(member.kind == Kind.PROFILE for member in self.members)

    @property
    def exact(self) -> bool:
        """True if it reproduces every bit."""
        return self.matching == self.elements

    @property
    def is_told(self) -> bool:
        """True if only this one function reproduces its results."""
        return len(self.members) == 1 or self.is_proved


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """The explanation of one operator. `causes` change some element, best first.

    `matching` is the number of elements that the profile reproduces. `assumed` inputs were computed, not dumped: if
    there are any, their producers may be at fault instead. If none of `causes` is exact, the cause is undetermined.
    `faults` are hypotheses that raised. `defect` is a fault that is no arithmetic: the cause, if no hypothesis fits.
    """

    index: int
    profile: str
    matching: int
    elements: int
    causes: tuple[Cause, ...]
    evidence: Evidence = field(default_factory=Evidence)
    places: Places = field(default_factory=Places)  # of the differing elements of its first differing tensor
    alike: tuple[int, ...] = ()  # other operators of the same kernel that exact causes were compared with
    beyond: tuple[int, ...] = ()  # divergent operators of other kernels that exact causes were compared with
    assumed: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()
    defect: Defect | None = None

    @property
    def fitting(self) -> tuple[Cause, ...]:
        """All causes that reproduce every bit: if there are several, this input does not distinguish them.

        If one reproduces other operators of the same kernel as well, those that do not are dropped. Of the rest, those
        that explain most of the other divergent operators are kept: one cause is likelier than many.
        """
        fitting = [cause for cause in self.causes if cause.exact]
        fitting = [cause for cause in fitting if not cause.not_at] or fitting
        most = max((len(cause.also_at) for cause in fitting), default=0)
        return tuple(cause for cause in fitting if len(cause.also_at) == most)

    @property
    def exact(self) -> tuple[Cause, ...]:
        """The likeliest of the fitting causes: profiles, if there are any.

        A runtime's known arithmetic is likelier than a mistake that no known runtime makes. If the dump has too little
        evidence, no mistake is named. If inputs were also computed, no cause is named at all, since their producers may
        be at fault.
        """
        return () if self._is_unnamed else self._leading

    @property
    def possible(self) -> tuple[Cause, ...]:
        """Causes that reproduce every bit, but have too little evidence to be named as likely."""
        return self.fitting if self._is_unnamed else ()

    @property
    def less_likely(self) -> tuple[Cause, ...]:
        """Mistakes that reproduce every bit if a profile does, too."""
        return () if self._is_unnamed else tuple(cause for cause in self.fitting if cause not in self._leading)

    @property
    def only_here(self) -> tuple[Cause, ...]:
        """Causes that reproduce every bit, but are dropped because they explain fewer of the other operators."""
        return tuple(cause for cause in self.causes if cause.exact and cause not in self.fitting)

    @property
    def certainty(self) -> Certainty:
        """The certainty of the cause: certain, likely, or neither."""
        return {
            CauseVerdict.EXPLAINED: Certainty.CERTAIN,
            CauseVerdict.LIKELY: Certainty.LIKELY,
            CauseVerdict.AMBIGUOUS: Certainty.LIKELY if self.reached != Certainty.NONE else Certainty.NONE,
        }.get(self.verdict, Certainty.NONE)

    @property
    def verdict(self) -> CauseVerdict:
        """The verdict on the cause."""
        if self.matching == self.elements:
            return CauseVerdict.SAME
        if self.defect is not None and self.is_a_defect:
            return _BY_DEFECT[self.defect.certainty]
        if self.possible:
            return CauseVerdict.UNTOLD
        if len(self.exact) > 1:
            return CauseVerdict.AMBIGUOUS
        if self.exact:
            if self.reached == Certainty.NONE:
                return CauseVerdict.UNTOLD
            return CauseVerdict.LIKELY if any(self.doubts) else CauseVerdict.EXPLAINED
        best = self.causes[0].matching if self.causes else 0
        halved = 2 * (self.elements - best) <= self.elements - self.matching
        return CauseVerdict.PARTIAL if halved else CauseVerdict.UNDETERMINED

    @property
    def is_a_defect(self) -> bool:
        """True if the cause is a fault that is no arithmetic."""
        return self.defect is not None and not self.fitting

    @property
    def _leading(self) -> tuple[Cause, ...]:
        return tuple([cause for cause in self.fitting if cause.is_a_profile] or self.fitting)

    @property
    def _is_unnamed(self) -> bool:
        if not self._leading or self.reached != Certainty.NONE:
            return False
        kind, differing = self._leading[0].kind, self.elements - self.matching
        few = differing < self.evidence.needed(kind, is_doubted=self._is_doubted, certainty=Certainty.LIKELY)
        return bool(self.assumed) or (few and not self._leading[0].is_a_profile)

    @property
    def _is_doubted(self) -> bool:
        return bool(self.assumed) or any(cause.not_at for cause in self._leading[:1])

    @property
    def reached(self) -> Certainty:
        """The certainty that the likeliest cause can reach by the bits of evidence alone."""
        if not self._leading:
            return Certainty.NONE
        return self.evidence.reaches(self._leading[0].kind, is_doubted=self._is_doubted)

    @property
    def doubts(self) -> Iterator[str]:
        """The reasons why the only cause is not certain."""
        if not self._leading:
            return
        cause, evidence = self._leading[0], self.evidence
        needed = evidence.needed(cause.kind, is_doubted=self._is_doubted)
        if evidence.bits < needed:
            tried = evidence.tried.get(cause.kind, 1)
            elements = "1 telling element" if evidence.telling == 1 else f"{evidence.telling:,} telling elements"
            worth = f"{elements} with {evidence.bits:,} {'bit' if evidence.bits == 1 else 'bits'} of evidence"
            yield f"{worth}, of {needed:,} needed after {tried:,} hypotheses with different results"
        elif evidence.stimuli < 2:
            yield "all telling elements come from one input"
        if not cause.is_told:
            yield f"{len(cause.members)} hypotheses give the same bits here and are not proved to be the same"
        if self.less_likely:
            yield "mistakes reproduce every bit, too"
