"""The report of a dump's findings: the first operator that differs, the cause, an element, how the difference grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.comparison.verification.results import Located
from tflq.comparison.verification.results import Verdict as Word
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.findings import Findings
from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    Code,
    Inline,
    InText,
    Listing,
    Next,
    Note,
    OnPage,
    Operator,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.differences import histogram_text, how_far
from tflq.face.report.joint import joint_section
from tflq.face.report.pictures import Strip
from tflq.face.report.verbs.explain.cause import cause_blocks, cause_headline, cause_text
from tflq.face.report.verbs.explain.element import element_blocks
from tflq.face.report.verbs.explain.figures import error_blocks, explain_graph, status_of
from tflq.face.report.verbs.explain.growth import growth_blocks
from tflq.face.report.verbs.explain.texts import (
    discrimination_texts,
    fault_texts,
    first_text,
    listed,
    next_steps,
    operator_row,
    place_texts,
    verdict_words,
)

STYLES = {Word.SAME: "good", Word.CLOSE: "warning", Word.DIFFERS: "bad", Word.INCOMPLETE: "warning"}
_COLUMNS = (("#", ">"), ("operator", "<"), ("differing", ">"), ("largest", ">"), ("not compared because", "<"))
_PAGE_COLUMNS = (*_COLUMNS[:2], ("status", "<"), *_COLUMNS[2:])


def explain_report(
    findings: Findings, model: str = "MODEL", dump: str = "DUMP", options: Sequence[str] = (), whole: str = ""
) -> Report:
    """Build the report of what was found of the dump at `dump`; `options` are words of the command that read it.

    `whole` is the answer that holds for all operators together, if there is one: it leads the cause of one of them.
    """
    about = ("model ", Code(model), ", dump ", Code(dump), f", profile {findings.profile}, {findings.mode.value}")
    word, _ = verdict_words(findings)
    return Report(
        "explain",
        list(_blocks(findings, model, dump, options, whole)),
        about=about,
        title=f"{word.rstrip(':')}: {model}",
    )


def discrimination_card(found: Discrimination) -> Report:
    """Build the report of inputs that distinguish causes."""
    what, *groups = discrimination_texts(found)
    of = "the model" if found.index is None else f"operator {found.index}"
    where = f"{len(found.causes)} causes of {of} in {len(found.groups)} groups: {listed(found.causes)}"
    then = "Next: a dump of other inputs may distinguish them"
    if found.trials:
        then = "Next: numpy.savez(path, **found.arrays()), run the device on these inputs, then tflq.explain"
    return Report("explain", [Verdict(what), Brief(where, then), *map(Text, groups)])


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
    yield Verdict(text, STYLES[findings.verdict], word, headline=headline)
    yield _brief(findings)
    yield strip(findings)
    yield from _first(findings)
    yield Section("cause", "Cause", list(_cause(findings, whole)))
    if findings.element is not None:
        yield element_blocks(findings.element, findings.sample)
    yield Next(list(next_steps(model, dump, findings, options)))
    yield OnPage(lambda _view: [explain_graph(findings, _difference_blocks)])
    yield Section("growth", "How it grows", list(growth_blocks(findings)))
    if findings.unknown:
        yield Note(f"{len(findings.unknown)} entries of {dump} name no tensor: {listed(findings.unknown)}")
    shown = [o for o in findings.operators if o.differs or o.reason]
    every = Table(_PAGE_COLUMNS, list(map(_page_row, findings.operators)))
    yield InText([Table(_COLUMNS, list(map(operator_row, shown)))])
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
        causes = listed([cause.name for cause in explanation.exact])
        then = f"Cause. {cause_text(explanation)} {causes}".rstrip()
    return Brief(where, then)


# --- The first operator that differs ---------------------------------------------------------------------------------


def _first(findings: Findings) -> Iterator[Block]:
    first, where = findings.first, findings.explained or findings.first
    if first is not None:
        yield InText([Text(f"First divergent operator: {first.index} {first.op}")])
    if where is None or (first is None and findings.explanation is None):
        return
    title = f"First divergent operator: {where.index} {where.op}" if where is first else "The operator explained"
    if first is not None and where is not first and findings.growths and where.index == findings.growths[0].index:
        effect = f"changes the outputs most, by {findings.growths[0].effect:.2g} of their largest magnitude"
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
    index, op, *rest = operator_row(o)
    word, shade = status_of(o)
    return [index, Operator(o.index, op), Badge(word, "soft" if shade == "unknown" else shade), *rest]
