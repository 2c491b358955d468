"""Blocks about the cause of a difference: the hypotheses that reproduce it, and how certain that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import Defect
from tflq.diagnosis.hypotheses import Kind
from tflq.face.report.blocks import Block, Fold, InText, Listing, OnPage, Styled, Text
from tflq.face.report.verbs.explain.texts import PARTIAL, listed

#: Words before a fault that is no arithmetic, by its certainty.
_DEFECTS = {
    Certainty.CERTAIN: "Certain: the values themselves show it",
    Certainty.LIKELY: "Likely, not certain",
    Certainty.NONE: "Possible, no more",
}


def defect_texts(defect: Defect) -> Iterator[str]:
    """Yield the place of a fault that is no arithmetic, what it clears, and what would show more."""
    if defect.place:
        yield f"where: {defect.place}"
    if defect.cleared:
        yield defect.cleared
    if defect.tell:
        yield f"to tell more: {defect.tell}"


def cause_blocks(e: Explanation) -> Iterator[Block]:
    """Yield the certainty, the causes that reproduce every bit, less likely ones, or the best partial ones."""
    style = "strong" if e.exact or e.is_a_defect else "warning"
    yield InText([Text(f"Cause. {cause_text(e)}", style)])
    yield OnPage(lambda _view: [Text(cause_text(e), style)])
    yield from _hypotheses(e.exact)
    if e.defect is not None:
        yield Listing(list(defect_texts(e.defect)))
    yield from (Text(text, "faint", indent=1) for text in (*_less_likely_texts(e), *_alike_texts(e)))
    partial = [] if e.fitting or e.defect is not None else [h for h in e.causes if h.matching > e.matching][:PARTIAL]
    if partial:
        yield Text(f"best partial ones ({e.profile} itself: {e.matching:,} of {e.elements:,}):", indent=1)
        yield from _hypotheses(partial, "faint")


def _hypotheses(causes: Sequence[Cause], style: str = "") -> Iterator[Block]:
    """Yield a line for each cause; a page folds the other names of the cause."""
    yield InText([Listing([_hypothesis_text(cause) for cause in causes], style)])
    yield OnPage(lambda _view: [block for cause in causes for block in _hypothesis(cause)])


def _hypothesis(h: Cause) -> Iterator[Block]:
    yield Listing([(f"{h.kind.value}: ", Styled(h.name, "strong"), f", {_evidence_text(h)}")])
    if h.also:
        yield Fold(f"{_alike_text(h)}: {listed(h.also)}", [Text("; ".join(h.also), "soft")])


def cause_text(e: Explanation) -> str:
    """Return one line: the causes that reproduce all bits, or that none does."""
    doubts = "; ".join(e.doubts)
    tried = e.evidence.tried.get(Kind.MISTAKE, 0)
    of = f", of {tried:,} with different results: profiles, mistakes, and pairs of the best" if tried else ""
    if e.defect is not None and e.is_a_defect:
        return f"{_DEFECTS[e.defect.certainty]}: {e.defect.name}"
    return {
        CauseVerdict.SAME: "Fed the dump's own inputs, the operator is the same: what differs comes from before it",
        CauseVerdict.EXPLAINED: "Certain: nothing else that was tried reproduces every bit:",
        CauseVerdict.LIKELY: f"Likely, not certain ({doubts}):",
        CauseVerdict.UNTOLD: f"Cannot tell: a wrong cause may reproduce every bit, too ({doubts}):",
        CauseVerdict.AMBIGUOUS: f"Likely one of these {len(e.exact)}: each reproduces every bit of this dump:",
        CauseVerdict.PARTIAL: "Undetermined: none reproduces every bit, though the best one most of them",
        CauseVerdict.UNDETERMINED: f"Undetermined: no hypothesis reproduces every bit{of}",
    }[e.verdict]


def cause_headline(e: Explanation) -> str:
    """Return the cause in a few words, for a headline."""
    names = listed([cause.name for cause in e.exact])
    if e.defect is not None and e.is_a_defect:
        word = "cause" if e.defect.certainty == Certainty.CERTAIN else "likely cause"
        return f"{word}: {e.defect.name}"
    return {
        CauseVerdict.SAME: f"the cause lies before operator {e.index}",
        CauseVerdict.EXPLAINED: f"cause: {names}",
        CauseVerdict.LIKELY: f"likely cause: {names}",
        CauseVerdict.AMBIGUOUS: f"likely one of {len(e.exact)} causes: {names}",
    }.get(e.verdict, "cause not determined")


def _less_likely_texts(e: Explanation) -> Iterator[str]:
    """Yield the mistakes that reproduce every bit, although a profile does too."""
    for h in e.less_likely:
        yield f"less likely: {_hypothesis_text(h)}"
    for h in e.possible:
        yield f"possible: {_hypothesis_text(h)}"


def _alike_texts(e: Explanation) -> Iterator[str]:
    """Yield which other operators the causes reproduce, and which not."""
    held = [index for index in e.alike if all(index not in cause.not_at for cause in e.fitting)]
    if held:
        yield f"reproduces operators of the same type as well: {', '.join(map(str, held))}"
    beyond = e.fitting[0].also_at if e.fitting else ()
    if beyond:
        yield f"reproduces divergent operators of other types as well: {', '.join(map(str, beyond))}"
    for h in (*e.only_here, *(h for h in e.fitting if h.not_at)):
        missed = h.not_at or tuple(index for index in beyond if index not in h.also_at)
        yield f"reproduces every bit here, but not operator {', '.join(map(str, missed))}: {h.name}"


def _hypothesis_text(h: Cause) -> str:
    """Return the kind, the names and the evidence of a cause."""
    text = f"{h.kind.value}: {h.name}, {_evidence_text(h)}"
    return f"{text}; {_alike_text(h)}: {listed(h.also)}" if h.also else text


def _alike_text(h: Cause) -> str:
    """Return how the other names of a cause are known to be the same."""
    return "proved to be the same function" if h.is_proved else "the same on these inputs"


def _evidence_text(h: Cause) -> str:
    """Return the share of elements that a hypothesis reproduces."""
    return f"reproduces {h.matching:,} of {h.elements:,} elements"
