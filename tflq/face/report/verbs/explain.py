"""The report of `tflq explain`: the first operator that differs, the cause, an element, how the difference grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from shlex import join

import numpy as np
from markupsafe import Markup

from tflq.comparison.inspection.difference import First
from tflq.comparison.results import InputFacts, Located, Status, Verdict
from tflq.comparison.results import Verdict as Word
from tflq.diagnosis.amplification import Amplification, Reach
from tflq.diagnosis.apart import Discrimination
from tflq.diagnosis.causes import Cause, CauseVerdict, Explanation, Spots
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults import Defect
from tflq.diagnosis.findings import Divergence, Findings, Worked
from tflq.diagnosis.hypotheses import HypothesisKind
from tflq.face.report.blocks import (
    Badge,
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    Figures,
    Fold,
    Graph,
    Headline,
    Inline,
    InText,
    Listing,
    Next,
    Note,
    OnPage,
    OperatorBlock,
    Report,
    Section,
    Styled,
    TableBlock,
    Text,
)
from tflq.face.report.documents.diagnosis import (
    CauseDocument,
    DifferingOperatorDocument,
    ExplainDocument,
    ExplainGrowthDocument,
    ExplanationDocument,
    GrowthDocument,
    SpreadDocument,
    TensorDifferenceDocument,
    TracedElementDocument,
    WorkedDocument,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.shared import DiscriminationDocument
from tflq.face.report.graph.colouring import Colouring, scale
from tflq.face.report.html.differences import difference_colourings, distance_figure, error_figures
from tflq.face.report.joint import joint_section, nearest_document
from tflq.face.report.matrices import Strip
from tflq.face.report.verbs.element import element_blocks
from tflq.face.report.wording import histogram_text, how_far, listed

#: Partial hypotheses and names of one cause that are shown.
PARTIAL, _NAMES = 5, 4
#: Channels that are named; more are counted.
_CHANNELS = 8


def verdict_words(findings: Findings) -> tuple[str, str]:
    """Return the verdict's word, and how many operators it is about."""
    differing = len(findings.differing)
    compared = sum(bool(o.differences) for o in findings.operators)
    how_many = (
        f"in {differing} of" if differing else "in all" if findings.verdict == Verdict.SAME else "but the same in"
    )
    word, total = findings.verdict.value.upper(), len(findings.operators)
    if findings.is_of_outputs and not differing:
        return word, "for the outputs (inner tensors were not given)"
    if not compared:
        return f"{word}:", f"none of {total} operators could be compared"
    unwritten = sum(o.is_unwritten for o in findings.operators)
    rest = f"; {unwritten} not written by the runtime" if unwritten else ""
    return word, f"{how_many} {compared} operators compared ({total} in the model{rest})"


def next_steps(model: str, dump: str, findings: Findings, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield the command to type next, ready to be copied, and another one that may help.

    `options` are the words of the command that read the dump, which the next one needs, too.
    """
    e = findings.explanation
    signature = ("--signature", findings.signature) if findings.signature and "--signature" not in options else ()
    about = (*options, *signature)
    if "--inputs" not in options and e is None and not any(o.differences for o in findings.operators):
        yield command("explain", model, "--dump", dump, *about, "--inputs", "SOURCE")
    if e is None or e.verdict == CauseVerdict.SAME:
        return
    cause = e.exact[0] if e.exact else None
    if cause is None and findings.explained is not None and findings.explained.assumed:
        yield command("fit", model, "--dump", dump, *about)
    elif cause is not None and cause.kind == HypothesisKind.PROFILE:
        yield command("explain", model, "--dump", dump, *about, "--profile", cause.name)
    else:
        yield command("inspect", model, *_only(about, "--signature"), "--op", str(e.index))
    if (len(e.fitting) > 1 or any(h.also for h in e.fitting)) and findings.discrimination is None:
        yield command("explain", model, "--dump", dump, *about, "--op", str(e.index), "--discriminate", "apart.npz")


def command(verb: str, *words: str) -> str:
    """Return a command of tflq as it is typed."""
    return join(("tflq", verb, *words))


def _only(options: Sequence[str], name: str) -> tuple[str, ...]:
    """Return an option and its value, if it is among the words."""
    return tuple(options[(at := options.index(name)) : at + 2]) if name in options else ()


def operator_row(o: Located) -> list[str]:
    """Return the index, operator, differing elements of all, largest difference, and why nothing was compared."""
    parts = list(o.differences.values())
    counts = f"{sum(d.differing for d in parts):,} of {sum(d.elements for d in parts):,}" if parts else ""
    worst = max(parts, key=lambda d: d.largest, default=None)
    largest = f"{worst.largest:,} {worst.unit}" if worst is not None and worst.differing else ""
    problem = next((d.problem for d in parts if d.problem), "")
    return [str(o.index), o.op, counts, largest, o.reason or problem]


def first_text(first: First, several: bool) -> str:
    """Return the index of the first differing element, its sample if there are several, and both values."""
    sample = f" of sample {first.sample}" if several else ""
    return f"first at {list(first.index)}{sample}: profile {first.expected}, dump {first.got}"


def place_texts(places: Spots) -> Iterator[str]:
    """Yield what the places of all differing elements have in common."""
    if places.hit:
        names = f": {', '.join(map(str, places.hit))}" if len(places.hit) <= _CHANNELS else ""
        yield f"in {len(places.hit)} of {places.channels} channels{names}"
    for block in places.tails:
        yield f"only in the channels beyond the last whole block of {block}"
    if places.at_border:
        yield "only at the border of the image"


def fault_texts(findings: Findings) -> Iterator[str]:
    """Yield the hypotheses, and the parts of the explanation, that raised an exception."""
    faults = () if findings.explanation is None else findings.explanation.faults
    if faults:
        count = "1 hypothesis" if len(faults) == 1 else f"{len(faults):,} hypotheses"
        said = _listed([f"{fault.name} ({fault.kind}: {fault.text})" for fault in faults])
        yield f"{count} could not be run: {said}"
    for part in findings.faults:
        yield f"could not be computed: {part}"


#: The first names, and how many more there are.
_listed = partial(listed, most=_NAMES, between="; ", last="; and ")


def discrimination_texts(discrimination: Discrimination) -> Iterator[str]:
    """Yield the groups of causes that new inputs distinguish, and the owner of these inputs."""
    of = "the model" if discrimination.of_model else f"operator {discrimination.index} alone (tflq extract)"
    samples = "sample" if len(discrimination.trials) == 1 else "samples"
    if discrimination.trials:
        yield f"distinguished by {len(discrimination.trials)} {samples} of inputs of {of}: run the device on them"
    else:
        yield "no inputs that were tried distinguish them; none are written"
    for group in discrimination.groups:
        yield f"  {'one' if len(group) > 1 else 'alone'}: {_listed([discrimination.causes[cause] for cause in group])}"


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
        yield Fold(f"{_alike_text(h)}: {_listed(h.also)}", [Text("; ".join(h.also), "soft")])


def cause_text(e: Explanation) -> str:
    """Return one line: the causes that reproduce all bits, or that none does."""
    doubts = "; ".join(e.doubts)
    tried = e.evidence.tried.get(HypothesisKind.MISTAKE, 0)
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
    names = _listed([cause.name for cause in e.exact])
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
    for h in e.ranking.less_likely:
        yield f"less likely: {_hypothesis_text(h)}"
    for h in e.ranking.possible:
        yield f"possible: {_hypothesis_text(h)}"


def _alike_texts(e: Explanation) -> Iterator[str]:
    """Yield which other operators the causes reproduce, and which not."""
    held = [index for index in e.alike if all(index not in cause.not_at for cause in e.fitting)]
    if held:
        yield f"reproduces operators of the same type as well: {', '.join(map(str, held))}"
    beyond = e.fitting[0].also_at if e.fitting else ()
    if beyond:
        yield f"reproduces divergent operators of other types as well: {', '.join(map(str, beyond))}"
    elsewhere: dict[tuple[int, ...], list[str]] = {}
    for h in (*e.ranking.only_here, *(h for h in e.fitting if h.not_at)):
        missed = h.not_at or tuple(index for index in beyond if index not in h.also_at)
        elsewhere.setdefault(missed, []).append(h.name)
    for missed, names in elsewhere.items():
        yield f"{len(names)} fit here, but not operator {', '.join(map(str, missed))}: {_listed(names)}"


def _hypothesis_text(h: Cause) -> str:
    """Return the kind, the names and the evidence of a cause."""
    text = f"{h.kind.value}: {h.name}, {_evidence_text(h)}"
    return f"{text}; {_alike_text(h)}: {_listed(h.also)}" if h.also else text


def _alike_text(h: Cause) -> str:
    """Return how the other names of a cause are known to be the same."""
    return "proved to be the same function" if h.is_proved else "the same on these inputs"


def _evidence_text(h: Cause) -> str:
    """Return the share of elements that a hypothesis reproduces."""
    return f"reproduces {h.matching:,} of {h.elements:,} elements"


def explain_document(
    findings: Findings, model: str = "MODEL", dump: str = "DUMP", options: Sequence[str] = ()
) -> ExplainDocument:
    """Return the document of a dump's findings: `schemas/explain.schema.json`.

    With several signatures it is that of the gravest, and `signatures` holds those of all.
    """
    every = [_document(model, dump, one, options) for one in findings.signatures]
    return {**_document(model, dump, findings, options), "signatures": every}


def _document(model: str, dump: str, findings: Findings, options: Sequence[str]) -> ExplainDocument:
    document = filled(
        ExplainDocument,
        findings,
        model=model,
        dump=dump,
        signatures=[],
        first_divergent=_first(findings),
        noise=[o.index for o in findings.noise],
        operators=[_operator(o) for o in findings.operators],
        explanation=None if findings.explanation is None else _explanation(findings.explanation),
        nearest=nearest_document(findings.joint),
        discrimination=None if findings.discrimination is None else discrimination_document(findings.discrimination),
        element=None if findings.element is None else _element(findings.element),
        growth=None if findings.amplification is None else _growth(findings.amplification),
        growths=[_outcome(growth) for growth in findings.growths],
        next=list(next_steps(model, dump, findings, options)),
    )
    document.pop("signatures", None)
    return document


def _first(findings: Findings) -> int | None:
    """Return the differing operator that is explained, else the first in order of execution."""
    explained = findings.explained
    if explained is not None and explained.differs:
        return explained.index
    return None if findings.first is None else findings.first.index


def _operator(o: Located) -> DifferingOperatorDocument:
    tensors: list[TensorDifferenceDocument] = [
        {**filled(TensorDifferenceDocument, d, index=t), "problem": d.problem} for t, d in o.differences.items()
    ]
    return filled(DifferingOperatorDocument, o, tensors=tensors)


def _explanation(e: Explanation) -> ExplanationDocument:
    ranked = {name: getattr(e.ranking, name) for name in ("less_likely", "possible", "only_here")}
    lists = {**ranked, "exact": e.exact, "partial": [h for h in e.causes if not h.exact][:PARTIAL]}
    causes = {name: [filled(CauseDocument, cause) for cause in found] for name, found in lists.items()}
    return filled(ExplanationDocument, e, places=list(place_texts(e.places)), **causes)


def discrimination_document(discrimination: Discrimination) -> DiscriminationDocument:
    """Return the groups of causes that new inputs distinguish, and the owner of these inputs."""
    owner = "model" if discrimination.of_model else "operator"
    return filled(DiscriminationDocument, discrimination, inputs_of=owner, samples=len(discrimination.trials))


def _element(worked: Worked) -> WorkedDocument:
    """Return one element worked out as part of a document, with every tap."""
    return filled(
        WorkedDocument, worked.trace, operator=worked.index, tensor=worked.tensor, got=worked.got, cause=worked.other
    )


def element_run_document(model: str, inputs: InputFacts, worked: Worked) -> TracedElementDocument:
    """Return the document of an element of a profile's own run: `schemas/element.schema.json`."""
    return filled(TracedElementDocument, None, model=model, inputs=inputs, element=_element(worked))


def _growth(growth: Amplification) -> GrowthDocument:
    choices = [
        {
            "tensor": c.tensor,
            "rows": c.rows,
            "flipped": c.flipped,
            "first": None if c.first is None else {"row": c.first[0], "before": c.first[1], "after": c.first[2]},
        }
        for c in growth.choices
    ]
    return filled(GrowthDocument, growth, spreads=[_spread(s) for s in growth.spreads], choices=choices)


def _outcome(growth: Amplification) -> ExplainGrowthDocument:
    return filled(
        ExplainGrowthDocument,
        growth,
        later=len(growth.spreads),
        reached=len(growth.reached),
        farthest=None if growth.farthest is None else _spread(growth.farthest),
        flips=any(c.flipped for c in growth.choices),
    )


def _spread(s: Reach) -> SpreadDocument:
    return filled(SpreadDocument, s.difference, index=s.index, op=s.op, mean=s.difference.bias)


def explain_colourings(findings: Findings) -> list[Colouring]:
    """Return colourings of operators by their differences, and by how far the first one grows."""
    differences = {o.index: list(o.differences.values()) for o in findings.operators if o.differences}
    statuses = {o.index: status_of(o)[::-1] for o in findings.operators}
    colourings: list[Colouring] = list(difference_colourings(differences, statuses))
    if findings.verdict == Verdict.SAME:
        colourings = [colourings[2], *colourings[:2]]
    growth = findings.amplification
    if growth is not None and growth.spreads:
        reached = {s.index: float(s.difference.largest) for s in growth.spreads}
        colourings.append(scale(f"what operator {growth.index}'s difference grows to", reached, "LSB or ULP"))
    return colourings


def status_of(o: Located) -> tuple[str, str]:
    """Return the status of an operator in a word, and its shade."""
    if o.differs:
        return "differs", "bad"
    if o.status == Status.CLOSE:
        return "close", "warning"
    return ("same", "good") if o.differences else ("not compared", "unknown")


def explain_graph(findings: Findings, differences: Callable[[Findings, Located], Iterable[Block]]) -> Graph:
    """Return the model with a panel for each operator; `differences` builds the blocks of one that differs."""

    def panel(o: Located) -> Iterator[Block]:
        word, shade = status_of(o)
        reason = f": {o.reason}" if o.reason else ""
        yield Text(Badge(word + reason, "soft" if shade == "unknown" else shade))
        if o.differs:
            yield from differences(findings, o)
        yield Figures([distance_figure(d, f"tensor {tensor}", "dump - profile") for tensor, d in o.differences.items()])

    focus = findings.first.index if findings.first is not None else None
    return Graph(explain_colourings(findings), {o.index: list(panel(o)) for o in findings.operators}, focus)


def error_blocks(findings: Findings, where: Located) -> Iterator[Block]:
    """Yield the distribution of an operator's differences, and where in the tensor they lie."""
    divergence = findings.divergence
    drawings = [distance_figure(d, f"tensor {tensor}", "dump - profile") for tensor, d in where.differences.items()]
    yield Figures([*drawings, *(() if divergence is None else _maps(divergence, findings.sample))])


def _maps(divergence: Divergence, sample: int | None) -> Iterator[Markup]:
    error = np.nan_to_num(divergence.got.astype(np.float64) - divergence.expected.astype(np.float64))
    unit = "LSB" if divergence.got.dtype.kind in "iu" else "in the tensor's own units"
    of_sample = "" if sample is None else f", sample {sample} (in which most elements differ)"
    return error_figures(error, f"tensor {divergence.tensor}{of_sample}", unit)


#: Later operators that text shows.
_SPREADS = 8


_SPREAD_COLUMNS = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("mean", ">"))


_OUTCOME_COLUMNS = (
    ("#", ">"),
    ("later operators that differ", ">"),
    ("largest", ">"),
    ("at", "<"),
    ("arg-max", "<"),
    ("outputs change by", ">"),
)


def growth_blocks(findings: Findings) -> Iterator[Block]:
    """Yield which later operators the first difference reaches, and a row for each difference if there are several."""
    growth = findings.amplification
    if growth is not None:
        yield from _spreads(growth)
        yield Listing(list(choice_texts(growth)))
    if len(findings.growths) > 1:
        yield Text(f"{_outcome_title(findings.growths, len(findings.differing))}:")
        yield TableBlock(_OUTCOME_COLUMNS, list(map(_outcome_row, findings.growths)), indent=1)
    if findings.noise and len(findings.noise) < len(findings.differing):
        yield Text(f"noise of floats, below the others: operators {', '.join(str(o.index) for o in findings.noise)}")


def _spreads(growth: Amplification) -> Iterator[Block]:
    if growth.reason:
        yield Text(f"How it grows: not computed, {growth.reason}", "warning")
    if not growth.spreads:
        return
    if not growth.reason:
        head = Text(f"How operator {growth.index}'s difference grows, all else being equal:")
        yield InText(
            [head, TableBlock(_SPREAD_COLUMNS, list(map(_spread_row, _most_important(growth.reached))), indent=1)]
        )
    bars = [
        Bar(OperatorBlock(s.index, s.op), s.difference.largest, f"{s.difference.largest:,} {s.difference.unit}")
        for s in growth.spreads
        if growth.reached
    ]
    yield Bars("later operator", "largest difference, all else being equal", bars)
    every = TableBlock(_SPREAD_COLUMNS, list(map(_spread_row, growth.spreads)))
    yield Fold(f"{len(growth.spreads)} later operators", [every])


def _most_important(reached: Sequence[Reach]) -> Sequence[Reach]:
    """Return the operators that it reaches first, the one where it is largest, and the last ones."""
    if len(reached) <= _SPREADS:
        return reached
    half = _SPREADS // 2
    worst = max(reached[half:-half], key=lambda s: s.difference.largest, default=reached[half])
    return [*reached[:half], worst, *reached[-half:]]


def _spread_row(spread: Reach) -> list[str]:
    """Return the index, operator, differing elements of all, largest difference, and mean over those that differ."""
    d = spread.difference
    counts = f"{d.differing:,} of {d.elements:,}"
    return [str(spread.index), spread.op, counts, f"{d.largest:,} {d.unit}", f"{d.bias:+.3f}"]


def _outcome_title(growths: Sequence[Amplification], differing: int) -> str:
    """Return the table's title: how many of the differing operators it covers."""
    some = f" ({len(growths)} of {differing})" if len(growths) < differing else ""
    return f"Result of each difference alone, the worst first{some}"


def _outcome_row(growth: Amplification) -> list[str]:
    """Return index, operators reached, the largest difference and its operator, arg-max, and change of the outputs."""
    if growth.reason:
        return [str(growth.index), "", "", f"not computed, {growth.reason}", "", ""]
    farthest = growth.farthest
    largest = "" if farthest is None else f"{farthest.difference.largest:,} {farthest.difference.unit}"
    place = "" if farthest is None else f"{farthest.index} {farthest.op}"
    chosen = ("flips" if any(c.flipped for c in growth.choices) else "stays") if growth.choices else ""
    reached = f"{len(growth.reached):,} of {len(growth.spreads):,}"
    return [str(growth.index), reached, largest, place, chosen, f"{100 * growth.effect:.2g} %"]


def choice_texts(growth: Amplification) -> Iterator[str]:
    """Yield whether the difference reaches a later operator, and how many arg-max decisions it changes."""
    if growth.spreads and not growth.reached:
        yield "nothing of it arrives at any later operator"
    for choice in growth.choices:
        if choice.first is None:
            yield f"arg-max of output tensor {choice.tensor}: stays"
        else:
            row, before, after = choice.first
            yield (
                f"arg-max of output tensor {choice.tensor}: flips in {choice.flipped:,} of {choice.rows:,} rows, "
                f"first in row {row} from {before} to {after}"
            )


STYLES = {Word.SAME: "good", Word.CLOSE: "warning", Word.DIFFERS: "bad", Word.INCOMPLETE: "warning"}
_COLUMNS = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("not compared because", "<"))
_PAGE_COLUMNS = (_COLUMNS[1], ("status", "<"), *_COLUMNS[2:])


def explain_report(
    findings: Findings, model: str = "MODEL", dump: str = "DUMP", options: Sequence[str] = (), whole: str = ""
) -> Report:
    """Build the report of what was found of the dump at `dump`; `options` are words of the command that read it.

    `whole` is the answer that holds for all operators together, if there is one: it leads the cause of one of them.
    """
    about = (
        "model ",
        CodeBlock(model),
        ", dump ",
        CodeBlock(dump),
        f", profile {findings.profile}, {findings.mode.value}",
    )
    return Report(
        "explain", list(_blocks(findings, model, dump, options, whole)), about=about, title=f"{model}: tflq explain"
    )


def discrimination_card(found: Discrimination) -> Report:
    """Build the report of inputs that distinguish causes."""
    what, *groups = discrimination_texts(found)
    of = "the model" if found.index is None else f"operator {found.index}"
    where = f"{len(found.causes)} causes of {of} in {len(found.groups)} groups: {_listed(found.causes)}"
    then = "Next: a dump of other inputs may distinguish them"
    if found.trials:
        then = "Next: numpy.savez(path, **found.arrays()), run the device on these inputs, then tflq.explain"
    return Report("explain", [Headline(what), Brief(where, then), *map(Text, groups)])


def _blocks(findings: Findings, model: str, dump: str, options: Sequence[str], whole: str = "") -> Iterator[Block]:
    """Yield the findings on one signature, and in text those on the others after it."""
    if findings.signature:
        yield Text(findings.signature, "strong")
    yield from _of_one(findings, model, dump, options, whole)
    for other in findings.signatures:
        if other.signature != findings.signature:
            yield InText([Text(other.signature, "strong"), *_of_one(other, model, dump, options)])


def _of_one(findings: Findings, model: str, dump: str, options: Sequence[str], whole: str = "") -> Iterator[Block]:
    word, text = verdict_words(findings)
    explanation = findings.explanation if findings.first is not None else None
    headline = f"{text}; {cause_headline(explanation)}" if explanation is not None else ""
    yield Headline(text, STYLES[findings.verdict], word, headline=headline)
    yield _brief(findings)
    yield strip(findings)
    yield from _report_first(findings)
    yield Section("cause", "Cause", list(_cause(findings, whole)))
    if findings.element is not None:
        yield element_blocks(findings.element, findings.sample)
    yield Next(list(next_steps(model, dump, findings, options)))
    yield OnPage(lambda _view: [explain_graph(findings, _difference_blocks)])
    yield Section("growth", "How it grows", list(growth_blocks(findings)))
    if findings.unknown:
        yield Note(f"{len(findings.unknown)} entries of {dump} name no tensor: {_listed(findings.unknown)}")
    shown = [o for o in findings.operators if o.differs or (o.reason and not findings.is_of_outputs)]
    every = TableBlock(_PAGE_COLUMNS, list(map(_page_row, findings.operators)))
    yield InText([TableBlock(_COLUMNS, list(map(operator_row, shown)))])
    yield OnPage(lambda _view: [Section("operators", "Operators", [every])])


def strip(findings: Findings) -> Strip:
    """Return a square for each operator: the same, close, different, or not compared."""
    return Strip("operators: green is the same, red differs", [status_of(o)[1] for o in findings.operators])


def _brief(findings: Findings) -> Brief:
    first, explanation = findings.first, findings.explanation
    missing = next((o for o in findings.operators if o.reason), None)
    where, then = f"against profile {findings.profile}, {findings.mode.value}", "Next: .operators, .unknown"
    if first is not None:
        difference = next(d for d in first.differences.values() if not d.same)
        where = f"First divergent operator: {first.index} {first.op}: {difference.problem or how_far(difference)}"
    elif missing is not None:
        where = f"not compared: operator {missing.index} {missing.op}: {missing.reason}"
    if explanation is not None:
        causes = _listed([cause.name for cause in explanation.exact])
        then = f"Cause. {cause_text(explanation)} {causes}".rstrip()
    return Brief(where, then)


# --- The first operator that differs ---------------------------------------------------------------------------------


def _report_first(findings: Findings) -> Iterator[Block]:
    first, where = findings.first, findings.explained or findings.first
    if first is not None:
        yield InText([Text(f"First divergent operator: {first.index} {first.op}")])
    if where is None or (first is None and findings.explanation is None):
        return
    title = f"First divergent operator: {where.index} {where.op}" if where is first else "The operator explained"
    if first is not None and where is not first and findings.growths and where.index == findings.growths[0].index:
        effect = f"changes the outputs most, by up to {100 * findings.growths[0].effect:.2g} % of the largest"
        yield Text(f"Explained: operator {where.index} {where.op}, whose difference alone {effect}")
    blocks = [*_difference_blocks(findings, where)]
    if findings.explanation is not None:
        blocks.append(Listing(list(place_texts(findings.explanation.places))))
    if where.assumed and findings.explanation is not None:
        text = f"computed, as the dump lacks them: input tensors {list(where.assumed)}"
        blocks.append(Text(f"{text}; what makes them may be at fault instead", "warning", indent=1))
    blocks.append(OnPage(lambda _view: error_blocks(findings, where)))
    yield Section("first", title, blocks)


def _difference_blocks(findings: Findings, where: Located) -> Iterator[Block]:
    for tensor, d in where.differences.items():
        yield Text(f"operator {where.index} {where.op}, tensor {tensor}: {d.problem or how_far(d)}", indent=1)
        if d.histogram:
            yield Text(f"dump - profile: {histogram_text(d)}", indent=1)
        if d.first is not None:
            yield Text(first_text(d.first, findings.sample is not None), indent=1)


# --- The cause -------------------------------------------------------------------------------------------------------


def _cause(findings: Findings, whole: str = "") -> Iterator[Block]:
    if whole:
        yield Text(f"of the whole: {whole}", "strong")
    if findings.explanation is not None and findings.first is not None:
        yield from cause_blocks(findings.explanation)
    yield from joint_section(findings.joint)
    yield Listing(list(fault_texts(findings)), "warning")
    if findings.discrimination is not None:
        yield Listing(list(discrimination_texts(findings.discrimination)))


# --- Operators -------------------------------------------------------------------------------------------------------


def _page_row(o: Located) -> list[Inline]:
    rest = operator_row(o)[2:]
    word, shade = status_of(o)
    return [OperatorBlock(o.index, o.op), Badge(word, "soft" if shade == "unknown" else shade), *rest]
