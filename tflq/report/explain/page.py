"""`tflq explain` as a page: the first screen in its order, then how the difference grows and all operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from tflq.diagnosis.amplification import Amplification
from tflq.diagnosis.causes import Cause, Explanation
from tflq.diagnosis.findings import Divergence, Findings, Worked
from tflq.report.blocks import Bar
from tflq.report.explain.element_lines import TAP_COLUMNS, element_title, number, side_by_side, tap_row
from tflq.report.explain.growth_lines import (
    OUTCOME_COLUMNS,
    SPREAD_COLUMNS,
    choice_texts,
    outcome_row,
    outcome_title,
    spread_row,
)
from tflq.report.explain.lines import (
    NAMES,
    STYLES,
    alike_text,
    alike_texts,
    cause_text,
    discrimination_texts,
    evidence_text,
    fault_texts,
    first_text,
    how_far,
    less_likely_texts,
    listed,
    next_steps,
    operator_row,
    partial_ones,
    verdict_text,
)
from tflq.report.graph.colouring import Colouring, scale
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html import parts
from tflq.report.html.differences import difference_colourings, distance_figure, error_figures
from tflq.report.html.page import page
from tflq.report.names import short_name
from tflq.verification.results import Located, Status, Verdict

#: Taps that a page lists.
_TAPS = 2000

_OPERATOR_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("status", "<"),
    ("differing", ">"),
    ("largest", ">"),
    ("not compared because", "<"),
)


def explain_page(view: ModelView, path: str, dump: str, findings: Findings, inputs: str | None = None) -> str:
    """The page of a dump's findings; `path` and `dump` are where the model and the dump were read."""
    word, _, summary = verdict_text(findings).partition(" ")
    return page(
        "explain",
        summary,
        _first(findings),
        _cause(findings),
        _element(findings.element, findings.sample),
        parts.next_section(next_steps(path, dump, findings, inputs)),
        _graph(view, findings),
        _growth(findings),
        _operators(findings),
        title=f"{word}: {path}",
        word=word,
        tone=STYLES[findings.verdict],
        facts=[
            parts.together(
                Markup("model"),
                parts.code(path),
                Markup(", dump"),
                parts.code(dump),
                f", profile {findings.profile}, {findings.mode.value}",
            )
        ],
    )


def _first(findings: Findings) -> Markup:
    where = findings.explained or findings.first
    if where is None or findings.first is None:
        return Markup("")
    tensors = (
        {findings.divergence.tensor: short_name(findings.divergence.name)} if findings.divergence is not None else {}
    )
    figures = [
        distance_figure(d, f"tensor {tensor} {tensors.get(tensor, '')}".strip(), "dump - profile")
        for tensor, d in where.differences.items()
    ]
    if findings.divergence is not None:
        figures += _maps(findings.divergence, findings.sample)
    return parts.section(
        "first",
        f"First divergent operator: {findings.first.index} {findings.first.op}",
        *map(parts.paragraph, _difference_texts(findings, where)),
        parts.listing(() if findings.explanation is None else findings.explanation.places),
        parts.side_by_side(*figures),
    )


def _difference_texts(findings: Findings, where: Located) -> Iterator[str]:
    for tensor, d in where.differences.items():
        text = f"operator {where.index} {where.op}, tensor {tensor}: {d.problem or how_far(d)}"
        yield text + (f"; {first_text(d.first, findings.sample is not None)}" if d.first is not None else "")


def _maps(divergence: Divergence, sample: int | None) -> Iterator[Markup]:
    error = np.nan_to_num(divergence.got.astype(np.float64) - divergence.expected.astype(np.float64))
    unit = "LSB" if divergence.got.dtype.kind in "iu" else "in the tensor's own units"
    of_sample = "" if sample is None else f", sample {sample}"
    return error_figures(error, f"tensor {divergence.tensor} {short_name(divergence.name)}{of_sample}", unit)


def _cause(findings: Findings) -> Markup:
    e = findings.explanation
    if e is None or findings.first is None:
        return Markup("")
    return parts.section(
        "cause",
        "Cause",
        parts.paragraph(cause_text(e)),
        _hypotheses(e.exact),
        *map(parts.paragraph, (*less_likely_texts(e), *alike_texts(e), *fault_texts(findings))),
        _partial(e),
        *map(parts.paragraph, () if findings.discrimination is None else discrimination_texts(findings.discrimination)),
    )


def _partial(e: Explanation) -> Markup:
    ones = partial_ones(e)
    if not ones:
        return Markup("")
    itself = f"Best partial ones; {e.profile} itself: {e.matching:,} of {e.elements:,}:"
    return parts.together(parts.paragraph(itself), _hypotheses(ones))


def _hypotheses(causes: Sequence[Cause]) -> Markup:
    return parts.listing(map(_hypothesis, causes))


def _hypothesis(h: Cause) -> Markup:
    said = Markup("{}: <strong>{}</strong>, {}").format(
        parts.text(h.kind.value), parts.text(h.name), parts.text(evidence_text(h))
    )
    if not h.also:
        return said
    more = h.also[NAMES:]
    alike = parts.paragraph(f"{alike_text(h)}: {'; '.join(h.also[:NAMES])}", "soft")
    return parts.together(said, alike, parts.details(f"and {len(more)} more", "; ".join(more)) if more else "")


def _element(worked: Worked | None, sample: int | None) -> Markup:
    if worked is None:
        return Markup("")
    trace, other = worked.trace, worked.other
    got = Markup(", got <strong>{}</strong>").format(number(worked.got)) if worked.got is not None else Markup("")
    working = trace.working
    outside = f", {working.outside:,} outside the image" if working.outside else ""
    taps = parts.table(TAP_COLUMNS, (tap_row(trace, tap) for tap in working.taps[:_TAPS]))
    columns = [("step", "<"), (trace.profile, ">"), *([(other.profile, ">")] if other else []), ("how", "<")]
    steps = list(_steps(worked))
    return parts.section(
        "element",
        element_title(worked, sample),
        Markup("<p>expected <strong>{}</strong>{}</p>").format(number(trace.expected), got),
        parts.details(f"{len(working.taps):,} taps{outside}", taps) if working.taps else "",
        parts.table(columns, [row for row, _ in steps], ["parts" if apart else "" for _, apart in steps]),
        "" if trace.is_told else parts.paragraph("The steps inside this kernel are not told apart.", "soft"),
    )


def _steps(worked: Worked) -> Iterator[tuple[list[object], bool]]:
    """Rows of the profile's and the cause's steps, side by side, and whether their values differ."""
    for pair in side_by_side(worked):
        there = [step for step in pair if step is not None]
        values = [Markup("<code>{}</code>").format("" if step is None else number(step.value)) for step in pair]
        shown = values[: 1 if worked.other is None else 2]
        name = "; ".join(dict.fromkeys(step.name for step in there))
        yield [name, *shown, parts.code(there[0].how)], len(there) == 2 and values[0] != values[1]


def explain_colourings(findings: Findings) -> list[Colouring]:
    """Operators by their differences, and by what the first one grows to."""
    differences = {o.index: list(o.differences.values()) for o in findings.operators if o.differences}
    statuses = {o.index: _status(o)[::-1] for o in findings.operators}
    colourings: list[Colouring] = list(difference_colourings(differences, statuses))
    if findings.verdict == Verdict.SAME:
        colourings = [colourings[2], *colourings[:2]]
    if findings.amplification is not None and findings.amplification.spreads:
        reached = {s.index: float(s.difference.largest) for s in findings.amplification.spreads}
        colourings.append(
            scale(f"what operator {findings.amplification.index}'s difference grows to", reached, "LSB or ULP")
        )
    return colourings


def _graph(view: ModelView, findings: Findings) -> Markup:
    located = {o.index: o for o in findings.operators}
    focus = findings.first.index if findings.first is not None else None
    return graph_section(view, explain_colourings(findings), lambda index: _panel(findings, located.get(index)), focus)


def _panel(findings: Findings, o: Located | None) -> Markup:
    if o is None:
        return Markup("")
    status, shade = _status(o)
    texts = _difference_texts(findings, o) if o.differs else iter(())
    figures = (distance_figure(d, f"tensor {tensor}", "dump - profile") for tensor, d in o.differences.items())
    return parts.together(
        parts.note(status + (f": {o.reason}" if o.reason else ""), "soft" if shade == "unknown" else shade),
        *map(parts.paragraph, texts),
        *figures,
    )


def _status(o: Located) -> tuple[str, str]:
    """What is known of an operator, and its shade."""
    if o.differs:
        return "differs", "bad"
    if o.status == Status.CLOSE:
        return "close", "warning"
    return ("same", "good") if o.differences else ("not compared", "unknown")


def _growth(findings: Findings) -> Markup:
    growth = findings.amplification
    if growth is None:
        return Markup("")
    reached = [
        Bar(parts.operator_link(s.index, s.op), s.difference.largest, f"{s.difference.largest:,} {s.difference.unit}")
        for s in growth.spreads
        if growth.reached
    ]
    outcomes = [outcome_row(g) for g in findings.growths] if len(findings.growths) > 1 else []
    return parts.section(
        "growth",
        "How it grows",
        parts.paragraph(f"Not computed: {growth.reason}" if growth.reason else "", "warning"),
        parts.bars("later operator", "largest difference, all else being equal", reached),
        *map(parts.paragraph, choice_texts(growth)),
        _spreads(growth),
        parts.together(
            Markup("<h3>{}</h3>").format(outcome_title(findings.growths, len(findings.differing))),
            parts.table(OUTCOME_COLUMNS, outcomes),
        )
        if outcomes
        else "",
    )


def _spreads(growth: Amplification) -> Markup:
    if not growth.spreads:
        return Markup("")
    table = parts.table(SPREAD_COLUMNS, map(spread_row, growth.spreads))
    return parts.details(f"{len(growth.spreads)} later operators", table)


def _operators(findings: Findings) -> Markup:
    rows: list[list[object]] = []
    for o in findings.operators:
        index, op, differing, largest, reason = operator_row(o)
        status, shade = _status(o)
        style = "soft" if shade == "unknown" else shade
        shown = Markup('<span class="{}"><span class="dot" aria-hidden="true"></span>{}</span>').format(style, status)
        rows.append([index, parts.operator_link(o.index, op), shown, differing, largest, reason])
    unknown = (
        f"{len(findings.unknown)} entries of the dump name no tensor: {listed(findings.unknown)}"
        if findings.unknown
        else ""
    )
    table = parts.table(_OPERATOR_COLUMNS, rows)
    return parts.section("operators", "Operators", table, parts.paragraph(unknown, "warning"))
