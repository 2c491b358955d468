"""The report of two sessions: the verdict, tokens, where they first differ, and every step."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from tflq.comparison.sessions.results import ComparedStep, SessionComparison
from tflq.comparison.sessions.tokenizers import Tokenizer
from tflq.escaping import quoted
from tflq.face.report.blocks import Block, Brief, Code, Fact, Figures, Next, Note, Report, Section, Table, Verdict
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.texts import decibels
from tflq.face.report.verbs.session.figures import band_map, logits_figure

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
    about: list[Code | str] = []
    for facts in found.models:
        about += [Code(facts.path or "model"), f" ({facts.size:,} bytes) "]
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
    yield Verdict(_lead(found), style, word=word, subject=_path(found))
    for text in summary_texts(found):
        yield Fact(text)
    for text in texts_of(found, tokenizer):
        yield Fact(text)
    for note in found.notes:
        yield Note(note)
    yield Section(
        "map", "Signal to noise by step and layer", [Figures([band_map(found)]), Figures([logits_figure(found)])]
    )
    rows = [_row(step) for step in found.steps]
    rest = "... and {left} more steps (--html FILE shows all)"
    yield Section("steps", "Steps", [Table(_COLUMNS, rows, most=_LISTED, rest=rest)])
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
