"""What a verb found of several models at one glance: the gravest first, then a row for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from shlex import quote
from typing import Any

from tflq.report.json import error_document
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Schema of the document: `schemas/summary.schema.json`.
SUMMARY = "tflq/summary/1"
FAILED = "failed"


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What became of one model: a word for it, the cells of its row, its document and exit code; or an error."""

    path: str
    word: str
    cells: tuple[str, ...]
    document: Mapping[str, Any] | None
    code: IntEnum
    error: Exception | None = None


def summary_lines(
    verb: str, columns: Sequence[tuple[str, str]], outcomes: Sequence[Outcome], code: IntEnum
) -> Iterator[Line]:
    """Counts of the words, what to type about the first model that has the gravest `code`, and a row for each model."""
    worst = next(outcome for outcome in outcomes if outcome.code == code)
    counts = Counter(outcome.word for outcome in outcomes)
    ordered = sorted(counts, key=lambda word: word != worst.word)
    style = "good" if not worst.code else "warning" if worst.error is None else "bad"
    words = ", ".join(f"{counts[word]} {word}" for word in ordered)
    yield Line(f"{worst.word.upper()} {counted(len(outcomes), 'model')}: {words}", style)
    if worst.code:
        yield Line(f"Next: tflq {verb} {quote(worst.path)}", "strong")
    width = len(columns)
    rows = [[o.word, *(o.cells or ("",) * width), o.path, "" if o.error is None else str(o.error)] for o in outcomes]
    yield from table((("", "<"), *columns, ("model", "<"), ("error", "<")), rows)


def summary_document(verb: str, outcomes: Sequence[Outcome], code: IntEnum) -> dict[str, Any]:
    """The summary with each model's own document: `schemas/summary.schema.json`."""
    models = [
        {
            "path": outcome.path,
            "outcome": outcome.word,
            "report": outcome.document,
            "error": None if outcome.error is None else error_document(outcome.error, outcome.code),
        }
        for outcome in outcomes
    ]
    return {"schema": SUMMARY, "verb": verb, "exit_code": int(code), "models": models}
