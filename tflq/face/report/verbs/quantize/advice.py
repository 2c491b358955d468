"""Advice on a page and in text: remarks about the calibration data, and the options that were tried, with prices."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import cast

from tflq.face.report.blocks import Block, Columns, Listing, Section, Table, Text
from tflq.face.report.documents.quantize import AdviceDocument, TrialDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.texts import decibels, samples_text
from tflq.quantization.advice import Advice, Measured


def advice_sections(advice: Advice | None) -> Iterator[Section]:
    """Yield the section of the advice; nothing if none was asked for."""
    if advice is None:
        return
    blocks: list[Block] = [Listing([f"calibration data: {text}" for text in advice.data], "warning", indent=0)]
    blocks.append(Text(conclusion_text(advice)))
    tried = [trial for trial in advice.trials if not trial.error]
    blocks.append(Table(_columns(advice), [_row(advice, row) for row in (advice.written, *tried)], indent=1))
    blocks += [Text(f"{option_text(t)} is refused: {t.error}", "warning") for t in advice.trials if t.error]
    yield Section("advice", "What wins losses back", blocks)


def conclusion_text(advice: Advice) -> str:
    """Return the best option with what it gives and costs, or that none helps."""
    tried = counted(len(advice.trials), "option")
    if not advice.worth:
        return f"Of {tried} tried, none wins back 0.5 dB or a tenth of a percent, over {samples_text(advice.samples)}"
    best = advice.worth[0]
    added = best.size - advice.written.size
    bytes_ = f"{abs(added):,} bytes {'more' if added >= 0 else 'less'}"
    gained = f"{_figure(advice.written)} becomes {_figure(best)}"
    return f"Of {tried} tried, {option_text(best)} wins back most: {gained}, for {bytes_}; add it to the same command"


def option_text(trial: Measured) -> str:
    """Return the words to add to the command."""
    return " ".join(map(quote, trial.options)) or "as written"


def _figure(row: Measured) -> str:
    first = f"accuracy {row.accuracy:.2%}, " if row.accuracy is not None else ""
    metrics = "".join(f"{name} {value:.4g}, " for name, value in row.metrics[:1])
    return f"{first}{metrics}{decibels(row.sqnr)}"


def _columns(advice: Advice) -> Columns:
    labelled = [("accuracy", ">")] if advice.written.accuracy is not None else []
    same = [("same top-1", ">")] if advice.written.agreement is not None else []
    metrics = [(name, ">") for name, _ in advice.written.metrics]
    price = [("bytes", ">"), ("in float", ">"), ("in 16 bits", ">")]
    return (("option", "<"), *labelled, *same, *metrics, ("dB", ">"), *price)


def _row(advice: Advice, row: Measured) -> list[str]:
    cells = [option_text(row)]
    if advice.written.accuracy is not None:
        cells.append("" if row.accuracy is None else f"{row.accuracy:.2%}")
    if advice.written.agreement is not None:
        cells.append("" if row.agreement is None else f"{row.agreement:.2%}")
    values = dict(row.metrics)
    cells += [f"{values[name]:.4g}" if name in values else "" for name, _ in advice.written.metrics]
    ratio = decibels(row.sqnr).removesuffix(" dB")
    return [*cells, ratio, f"{row.size:,}", str(row.floats), str(row.wides)]


def advice_document(advice: Advice | None) -> AdviceDocument | None:
    """Return the advice as a document; None if none was asked for."""
    if advice is None:
        return None
    return {
        "data": list(advice.data),
        "samples": advice.samples,
        "written": _document(advice, advice.written),
        "trials": [_document(advice, trial) for trial in advice.trials],
    }


def _document(advice: Advice, row: Measured) -> TrialDocument:
    gain = 0.0 if row.error or not row.options else advice.gain(row)
    metrics, options = dict(row.metrics), list(row.options)
    return cast(TrialDocument, fields_of(row, options=options, metrics=metrics, error=row.error or None, wins=gain > 0))
