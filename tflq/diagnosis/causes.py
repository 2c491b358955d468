"""Causes of one operator's differing bits, the facts about them, and the remaining doubts.

The places of differing elements: only facts that hold for all of them, and not for all elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.certainty import Certainty, Weighed
from tflq.diagnosis.faults.case import Defect
from tflq.diagnosis.hypotheses import Hypothesis, HypothesisKind, Raised

#: Sizes of the blocks of channels that vectorized kernels compute at once.
_BLOCKS = (16, 8)


@dataclass(frozen=True, slots=True)
class Spots:
    """Facts about all differing elements of a tensor.

    `hit` are the channels with such elements out of `channels`, empty if all have some. `tails` are the sizes of blocks
    of channels after whose last whole one the elements begin. With `at_border`, all are at the border of the image.
    """

    channels: int = 0
    hit: tuple[int, ...] = ()
    tails: tuple[int, ...] = ()
    at_border: bool = False


def places(unequal: NDArray[np.bool_]) -> Spots:
    """Return the places of the true elements of a mask (channels last; rank 4 is N, H, W, C)."""
    if not (unequal.any() and unequal.ndim):
        return Spots()
    channels = unequal.shape[-1]
    hit = np.flatnonzero(unequal.reshape(-1, channels).any(axis=0)).tolist()
    tails = tuple(block for block in _BLOCKS if 0 < channels - channels % block <= hit[0])
    is_image = unequal.ndim == 4 and min(unequal.shape[1:3]) > 2
    at_border = is_image and not bool(unequal[:, 1:-1, 1:-1].any())
    return Spots(channels, tuple(hit) if len(hit) < channels else (), tails, at_border)


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
    def kind(self) -> HypothesisKind:
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
        return any(member.kind == HypothesisKind.PROFILE for member in self.members)

    @property
    def exact(self) -> bool:
        """True if it reproduces every bit."""
        return self.matching == self.elements

    @property
    def is_told(self) -> bool:
        """True if only this one function reproduces its results."""
        return len(self.members) == 1 or self.is_proved


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The causes of an operator that reproduce every bit, by what else is known.

    Attributes:
        fitting: All of them: if there are several, this input does not distinguish them. If one reproduces other
            operators of the same kernel as well, those that do not are dropped. Of the rest, those that explain most
            of the other divergent operators are kept: one cause is likelier than many.
        only_here: The causes that are dropped because they explain fewer of the other operators.
        exact: The likeliest of the fitting causes: profiles, if there are any. A runtime's known arithmetic is likelier
            than a mistake that no known runtime makes. If the dump has too little evidence, no mistake is named. If
            inputs were also computed, no cause is named at all, since their producers may be at fault.
        less_likely: The mistakes beside `exact` profiles.
        possible: All fitting causes, if there is too little evidence to name any of them as likely.
        first: The likeliest cause, named or not.
        is_doubted: Whether the likeliest cause needs twice the bits of evidence.
        reached: The certainty that the likeliest cause can reach by the bits of evidence alone.
    """

    fitting: tuple[Cause, ...] = ()
    only_here: tuple[Cause, ...] = ()
    exact: tuple[Cause, ...] = ()
    less_likely: tuple[Cause, ...] = ()
    possible: tuple[Cause, ...] = ()
    first: Cause | None = None
    is_doubted: bool = False
    reached: Certainty = Certainty.NONE


def ranked(causes: Sequence[Cause], evidence: Weighed, differing: int, *, has_assumed: bool) -> Ranking:
    """Return the ranking of causes of `differing` elements; `has_assumed` if inputs were computed, not dumped."""
    exact = [cause for cause in causes if cause.exact]
    kept = [cause for cause in exact if not cause.not_at] or exact
    most = max((len(cause.also_at) for cause in kept), default=0)
    fitting = tuple(cause for cause in kept if len(cause.also_at) == most)
    only_here = tuple(cause for cause in exact if cause not in fitting)
    if not fitting:
        return Ranking(only_here=only_here)
    leading = tuple(cause for cause in fitting if cause.is_a_profile) or fitting
    first = leading[0]
    is_doubted = has_assumed or bool(first.not_at)
    reached = evidence.reaches(first.kind, is_doubted=is_doubted)
    few = differing < evidence.needed(first.kind, is_doubted=is_doubted, certainty=Certainty.LIKELY)
    named = Ranking(fitting, only_here, first=first, is_doubted=is_doubted, reached=reached)
    if reached == Certainty.NONE and (has_assumed or (few and not first.is_a_profile)):
        return replace(named, possible=fitting)
    return replace(named, exact=leading, less_likely=tuple(cause for cause in fitting if cause not in leading))


@dataclass(frozen=True, eq=False)
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
    evidence: Weighed = field(default_factory=Weighed)
    places: Spots = field(default_factory=Spots)  # of the differing elements of its first differing tensor
    alike: tuple[int, ...] = ()  # other operators of the same kernel that exact causes were compared with
    beyond: tuple[int, ...] = ()  # divergent operators of other kernels that exact causes were compared with
    assumed: tuple[int, ...] = ()
    faults: tuple[Raised, ...] = ()
    defect: Defect | None = None

    @cached_property
    def ranking(self) -> Ranking:
        """The causes that reproduce every bit, the likeliest apart from the others."""
        differing = self.elements - self.matching
        return ranked(self.causes, self.evidence, differing, has_assumed=bool(self.assumed))

    @property
    def fitting(self) -> tuple[Cause, ...]:
        """See `Ranking`."""
        return self.ranking.fitting

    @property
    def exact(self) -> tuple[Cause, ...]:
        """See `Ranking`."""
        return self.ranking.exact

    @property
    def certainty(self) -> Certainty:
        """The certainty of the cause: certain, likely, or neither."""
        return {
            CauseVerdict.EXPLAINED: Certainty.CERTAIN,
            CauseVerdict.LIKELY: Certainty.LIKELY,
            CauseVerdict.AMBIGUOUS: Certainty.LIKELY if self.ranking.reached != Certainty.NONE else Certainty.NONE,
        }.get(self.verdict, Certainty.NONE)

    @property
    def verdict(self) -> CauseVerdict:
        """The verdict on the cause."""
        if self.matching == self.elements:
            return CauseVerdict.SAME
        if self.defect is not None and self.is_a_defect:
            return _BY_DEFECT[self.defect.certainty]
        if self.ranking.possible:
            return CauseVerdict.UNTOLD
        if len(self.exact) > 1:
            return CauseVerdict.AMBIGUOUS
        if self.exact:
            if self.ranking.reached == Certainty.NONE:
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
    def doubts(self) -> Iterator[str]:
        """The reasons why the only cause is not certain."""
        cause, evidence = self.ranking.first, self.evidence
        if cause is None:
            return
        needed = evidence.needed(cause.kind, is_doubted=self.ranking.is_doubted)
        if evidence.bits < needed:
            tried = evidence.tried.get(cause.kind, 1)
            elements = "1 telling element" if evidence.telling == 1 else f"{evidence.telling:,} telling elements"
            worth = f"{elements} with {evidence.bits:,} {'bit' if evidence.bits == 1 else 'bits'} of evidence"
            yield f"{worth}, of {needed:,} needed after {tried:,} hypotheses with different results"
        elif evidence.stimuli < 2:
            yield "all telling elements come from one input"
        if not cause.is_told:
            yield f"{len(cause.members)} hypotheses give the same bits here and are not proved to be the same"
        if self.ranking.less_likely:
            yield "mistakes reproduce every bit, too"
