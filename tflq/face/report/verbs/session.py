"""The report of two sessions: the verdict, tokens, where they first differ, and every step.

The report of a comparison of two sessions.

A comparison of two sessions as a document: `schemas/session.schema.json`.

Figures of two sessions: signal to noise by step and layer, and of the logits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from shlex import quote

from markupsafe import Markup

from tflq.comparison.sessions.compare import Band, ComparedStep, SessionComparison
from tflq.comparison.sessions.text import Tokenizer
from tflq.face.report.blocks import (
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Headline,
    Next,
    Note,
    Report,
    Section,
    TableBlock,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.proof import (
    BandDocument,
    FirstStepDocument,
    LogitDocument,
    SessionDocument,
    SessionStepDocument,
)
from tflq.face.report.documents.shared import OperatorNameDocument
from tflq.face.report.html.charts import line
from tflq.face.report.html.page import figure, text
from tflq.face.report.verbs.compare_texts import decibels
from tflq.face.report.wording import counted
from tflq.texts import facts_of, quoted


def session_document(found: SessionComparison) -> SessionDocument:
    """Return the document of a comparison. Noise is in dB; null where all bits agree."""
    return filled(
        SessionDocument,
        found,
        agreement={"agree": found.agreement[0], "of": found.agreement[1]},
        first=None if found.first is None else _first(found),
        steps=[_step(step) for step in found.steps],
        facts=facts_of(found.notes),
    )


def _first(found: SessionComparison) -> FirstStepDocument:
    first = found.first
    assert first is not None
    operator: OperatorNameDocument | None = (
        None if first.operator is None else {"index": first.operator[0], "op": first.operator[1]}
    )
    return filled(FirstStepDocument, first, operator=operator)


def _step(step: ComparedStep) -> SessionStepDocument:
    logits = step.logits
    return filled(
        SessionStepDocument,
        step,
        noise={name: _finite(value) for name, value in step.noise.items()},
        logits=None if logits is None else filled(LogitDocument, logits, noise=_finite(logits.noise)),
        bands=[filled(BandDocument, band, noise=_finite(band.noise)) for band in step.bands],
    )


def _finite(noise: float) -> float | str | None:
    """Return dB; null without noise, "-inf" without a finite ratio."""
    return None if noise == math.inf else "-inf" if not math.isfinite(noise) else noise


#: Least dB of each shade: differences in the last bits of floats, up to noise that changes decisions.
_SHADES = ((120.0, "hot1"), (80.0, "hot2"), (40.0, "hot3"), (20.0, "hot4"), (-math.inf, "hot5"))
_CELL = Markup('<td class="{}" title="{}">{}</td>')
_TABLE = Markup(
    '<div class="scroll"><table class="matrix"><thead><tr><th>{}</th>{}</tr></thead><tbody>{}</tbody></table></div>'
)


def band_map(found: SessionComparison) -> Markup:
    """Return a table of steps (columns) by bands of operators (rows), in shades of their least dB."""
    steps = [step for step in found.steps if step.bands]
    if not steps:
        return Markup("")
    names = tuple(dict.fromkeys(band.name for step in steps for band in step.bands))
    head = Markup("").join(
        Markup('<th title="{}">{}</th>').format(text(f"{step.signature} at position {step.position}"), step.number)
        for step in steps
    )
    rows = []
    for name in names:
        cells = [_cell(next((band for band in step.bands if band.name == name), None)) for step in steps]
        rows.append(Markup("<tr><th scope=row>{}</th>{}</tr>").format(text(name), Markup("").join(cells)))
    caption = "least signal to noise of the operators' results in dB; · all bits agree; blank: no such operator"
    return figure(_TABLE.format("step", head, Markup("").join(rows)), caption)


def _cell(band: Band | None) -> Markup:
    if band is None or not band.compared:
        return _CELL.format("clear", "", "")
    if not band.differing:
        return _CELL.format("clear", text(f"{band.compared} results agree"), "·")
    shade = next(name for least, name in _SHADES if band.noise >= least)
    shown = f"{band.noise:.0f}" if math.isfinite(band.noise) else "-∞"
    return _CELL.format(shade, text(f"{band.differing} of {band.compared} results differ"), shown)


def logits_figure(found: SessionComparison) -> Markup:
    """Return the KL divergence by step; the caption names the steps in which the tokens differ."""
    scored = [(step.number, step.logits) for step in found.steps if step.logits is not None]
    largest = max((logits.divergence for _, logits in scored), default=0.0)
    if not largest:
        return Markup("")
    drawn = line(
        [logits.divergence for _, logits in scored],
        "KL divergence of the next token by step",
        f"{largest:.3g} nats",
        (f"step {scored[0][0]}", f"step {scored[-1][0]}"),
        "",
    )
    changed = [str(number) for number, logits in scored if not logits.agree]
    steps = f"; the token changes in step {', '.join(changed)}" if changed else ""
    return figure(drawn, f"KL divergence of the next token by step{steps}")


_COLUMNS = (
    ("step", ">"),
    ("signature", "<"),
    ("position", ">"),
    ("tokens", "<"),
    ("outputs", "<"),
    ("least SQNR", ">"),
    ("logits' SQNR", ">"),
    ("KL", ">"),
    ("next", "<"),
)
#: Steps that text lists, and tokens of a step that are shown.
_LISTED, _TOKENS = 6, 4


def session_report(found: SessionComparison, tokenizer: Tokenizer | None = None) -> Report:
    """Build the report of two sessions; with a tokenizer, texts are shown."""
    about: list[CodeBlock | str] = []
    for facts in found.models:
        about += [CodeBlock(facts.path or "model"), f" ({facts.size:,} bytes) "]
    return Report("session", list(_blocks(found, tokenizer)), about=tuple(about), title=f"{_path(found)}: tflq session")


def session_card(found: SessionComparison) -> Report:
    """Build the report of a comparison for a console."""
    agreed, of = found.agreement
    where = where_text(found) or ("every output agrees" if found.same else f"tokens agree in {agreed} of {of} steps")
    brief = Brief(where, "Next: .steps, .first, .agreement, .perplexities")
    return Report("session", [*_blocks(found, None), brief])


def _blocks(found: SessionComparison, tokenizer: Tokenizer | None) -> Iterator[Block]:
    word = found.verdict.upper()
    style = {"SAME": "good", "DIFFERS": "bad"}.get(word, "strong")
    yield Headline(_lead(found), style, word=word, subject=_path(found))
    for stated in (*summary_texts(found), *texts_of(found, tokenizer)):
        yield FactLine(stated)
    for note in found.notes:
        yield Note(note)
    yield Section(
        "map", "Signal to noise by step and layer", [Figures([band_map(found)]), Figures([logits_figure(found)])]
    )
    rows = [_row(step) for step in found.steps]
    rest = "... and {left} more steps (--html FILE shows all)"
    yield Section("steps", "Steps", [TableBlock(_COLUMNS, rows, most=_LISTED, rest=rest)])
    yield Next(list(_next(found)))


def _lead(found: SessionComparison) -> str:
    counts = dict[str, int]()
    for step in found.steps:
        counts[step.signature or "step"] = counts.get(step.signature or "step", 0) + 1
    steps = ", ".join(f"{count} × {name}" for name, count in counts.items())
    return f"{found.names[0]} and {found.names[1]}, {steps}"


def summary_texts(found: SessionComparison) -> Iterator[str]:
    """Yield the agreement of tokens, logits, perplexities, and where the sides first differ."""
    agreed, of = found.agreement
    if of:
        noise = [step.logits.noise for step in found.steps if step.logits is not None]
        worst = max(step.logits.divergence for step in found.steps if step.logits is not None)
        least = decibels(min(noise))
        logits = f"SQNR of the logits {least} at worst, KL at most {worst:.3g} nats"
        yield f"tokens agree in {agreed} of {of} steps; {logits}"
    if found.free and found.parted is not None:
        yield f"the texts part after {counted(found.parted, 'token')}; later steps are not compared"
    perplexities = found.perplexities
    if perplexities is not None:
        known = sum(step.logits is not None and step.logits.losses is not None for step in found.steps)
        yield f"perplexity {perplexities[0]:.4g} and {perplexities[1]:.4g} over {counted(known, 'token')} of the text"
    where = where_text(found)
    if where:
        yield where


def where_text(found: SessionComparison) -> str:
    """Return where the sides first differ; empty if they do not, or are two models."""
    first = found.first
    if first is None or len(found.models) > 1:
        return ""
    parts = [f"first difference: step {first.step}"]
    if first.signature:
        parts.append(f"{first.signature} at position {first.position}")
    if first.operator is not None:
        parts.append(f"operator {first.operator[0]} {first.operator[1]} ({first.band})")
    if first.output:
        parts.append(f"output {quoted(first.output)} {list(first.slot)}")
    return ", ".join(parts)


def texts_of(found: SessionComparison, tokenizer: Tokenizer | None) -> Iterator[str]:
    """Yield the text that each side chooses, once if they agree."""
    if tokenizer is None or not found.texts[0]:
        return
    first, second = (quoted(tokenizer.decode(text)) for text in found.texts)
    if found.texts[0] == found.texts[1]:
        yield f"both continue: {first}"
    else:
        sides = found.names if len(found.models) == 1 else tuple(facts.path or "model" for facts in found.models)
        yield f"{sides[0]} continues: {first}"
        yield f"{sides[1]} continues: {second}"


def _row(step: ComparedStep) -> list[str]:
    tokens = " ".join(map(str, step.tokens[:_TOKENS])) + (" ..." if len(step.tokens) > _TOKENS else "")
    apart = [name for name, difference in step.outputs.items() if not difference.same]
    outputs = "same" if not apart else f"{len(apart)} of {len(step.outputs)} differ"
    least = decibels(min(step.noise.values(), default=float("inf")))
    logits = step.logits
    scores = ["", "", ""]
    if logits is not None:
        choice = str(logits.choices[0]) if logits.agree else f"{logits.choices[0]} / {logits.choices[1]}"
        scores = [decibels(logits.noise), f"{logits.divergence:.2g}", choice]
    return [str(step.number), step.signature, str(step.position), tokens, outputs, least, *scores]


def _next(found: SessionComparison) -> Iterator[str]:
    path = quote(found.models[0].path or "MODEL")
    if len(found.models) == 1 and found.first is not None:
        signature = f" --signature {quote(found.first.signature)}" if found.first.signature else ""
        yield f"tflq profiles effects {path}{signature}"
    yield f"tflq session {path} --html session.html"


def _path(found: SessionComparison) -> str:
    return " against ".join(facts.path or "model" for facts in reversed(found.models))
