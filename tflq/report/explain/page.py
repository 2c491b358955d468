"""`tflq explain` as a page: the first screen in its order, then how the difference grows and all operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tflq
from tflq.diagnosis.amplification import Amplification
from tflq.diagnosis.explanation import Hypothesis
from tflq.diagnosis.findings import Divergence, Findings, Worked
from tflq.diagnosis.localization import Located
from tflq.inspection.difference import HISTOGRAM_REACH
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
    cause_text,
    discrimination_texts,
    evidence_text,
    first_text,
    how_far,
    listed,
    next_steps,
    operator_row,
    partial_ones,
    verdict_text,
)
from tflq.report.html.charts import farthest
from tflq.report.html.page import rendered

Array = NDArray[Any]

#: Elements of a row of a heat map of what has no height and width; of more than a square of these.
_ROW, _LONG_ROW = 16, 64
#: Taps that a page lists.
_TAPS = 2000


def explain_page(model: str, dump: str, found: Findings, inputs: str | None = None) -> str:
    """The page, whole: nothing has to be loaded to show it."""
    e = found.explanation
    verdict, _, summary = verdict_text(found).partition(" ")
    return rendered(
        "explain.html",
        version=tflq.__version__,
        model=model,
        dump=dump,
        profile=found.profile,
        mode=found.mode,
        verdict=verdict,
        style=STYLES[found.verdict],
        summary=summary,
        first="" if found.first is None else f"{found.first.index} {found.first.op}",
        differences=[] if found.explained is None else list(_differences(found, found.explained)),
        where=() if e is None else e.places,
        reach=HISTOGRAM_REACH,
        map=None if found.divergence is None else _map(found.divergence),
        cause="" if e is None or found.first is None else cause_text(e),
        causes=[] if e is None else [_hypothesis(h) for h in e.exact],
        partial=[] if e is None else [_hypothesis(h) for h in partial_ones(e)],
        apart=[] if found.discrimination is None else list(discrimination_texts(found.discrimination)),
        shown=NAMES,
        itself="" if e is None else f"{e.profile} itself: {e.matching:,} of {e.elements:,}",
        element=None if found.element is None else _element(found.element, found.sample),
        next=list(next_steps(model, dump, found, inputs)),
        growth=None if found.amplification is None else _growth(found.amplification),
        outcomes=[outcome_row(growth) for growth in found.growths] if len(found.growths) > 1 else [],
        outcome_title=outcome_title(found.growths, len(found.differing)),
        outcome_columns=OUTCOME_COLUMNS,
        operators=[_operator(o) for o in found.operators],
        unknown=listed(found.unknown),
        unknown_count=len(found.unknown),
    )


def _differences(found: Findings, where: Located) -> Iterator[dict[str, Any]]:
    for tensor, d in where.differences.items():
        text = f"operator {where.index} {where.op}, tensor {tensor}: {d.problem or how_far(d)}"
        if d.first is not None:
            text += f"; {first_text(d.first, found.sample is not None)}"
        yield {"text": text, "tensor": tensor, "histogram": d.histogram, "unit": d.unit}


def _hypothesis(h: Hypothesis) -> dict[str, Any]:
    return {"kind": h.kind, "name": h.name, "evidence": evidence_text(h), "also": h.also}


def _map(divergence: Divergence) -> dict[str, Any]:
    error = divergence.got.astype(np.float64) - divergence.expected.astype(np.float64)
    values, what = as_map(np.nan_to_num(error))
    largest = f"{np.abs(values).max(initial=0):,.6g}"
    return {"tensor": divergence.tensor, "name": divergence.name, "values": values, "what": what, "largest": largest}


def as_map(error: Array) -> tuple[Array, str]:
    """Differences as rows and columns, and what a cell is: images show the farthest of all channels and images."""
    if error.ndim == 4 and max(error.shape[1:3]) > 1:
        return farthest(np.moveaxis(error, 0, -1).reshape(*error.shape[1:3], -1)), "each cell the farthest channel"
    flat = error.reshape(-1)
    if error.ndim > 1 and error.shape[-1] <= 2 * _LONG_ROW and flat.size > error.shape[-1]:
        return flat.reshape(-1, error.shape[-1]), "a column for each channel"
    row = _ROW if flat.size <= _ROW**2 else _LONG_ROW
    return np.pad(flat, (0, -flat.size % row)).reshape(-1, row), f"elements in order, {row} a row"


def _element(worked: Worked, sample: int | None) -> dict[str, Any]:
    trace = worked.trace
    return {
        "title": element_title(worked, sample),
        "expected": number(trace.expected),
        "got": "" if worked.got is None else number(worked.got),
        "profile": trace.profile,
        "other": "" if worked.other is None else worked.other.profile,
        "count": f"{len(trace.working.taps):,}",
        "outside": trace.working.outside,
        "tap_columns": TAP_COLUMNS,
        "taps": [tap_row(trace, tap) for tap in trace.working.taps[:_TAPS]],
        "steps": list(_steps(worked)),
        "told": trace.is_told,
    }


def _steps(worked: Worked) -> Iterator[dict[str, Any]]:
    """Rows of the profile's and the cause's steps, side by side; `parts` marks those whose values differ."""
    for pair in side_by_side(worked):
        there = [step for step in pair if step is not None]
        values = ["" if step is None else number(step.value) for step in pair]
        yield {
            "name": "; ".join(dict.fromkeys(step.name for step in there)),
            "value": values[0],
            "other": values[1],
            "how": there[0].how,
            "parts": len(there) == 2 and values[0] != values[1],
        }


def _growth(growth: Amplification) -> dict[str, Any]:
    return {
        "reason": growth.reason,
        "bars": [(str(s.index), s.difference.largest, "plain") for s in growth.spreads] if growth.reached else [],
        "choices": list(choice_texts(growth)),
        "columns": SPREAD_COLUMNS,
        "rows": [spread_row(s) for s in growth.spreads],
    }


def _operator(o: Located) -> dict[str, str]:
    index, op, differing, largest, reason = operator_row(o)
    if o.differs:
        status, style = "differs", "bad"
    elif o.differences:
        status, style = "same", "good"
    else:
        status, style = "not compared", "warning"
    return {
        "index": index,
        "op": op,
        "differing": differing,
        "largest": largest,
        "reason": reason,
        "status": status,
        "style": style,
    }
