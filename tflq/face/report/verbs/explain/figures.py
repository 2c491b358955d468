"""Figures of a dump's findings on their page: the model, and where the first difference lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from markupsafe import Markup

from tflq.comparison.verification.results import Located, Status, Verdict
from tflq.diagnosis.findings import Divergence, Findings
from tflq.face.report.blocks import Badge, Block, Figures, Graph, Text
from tflq.face.report.graph.colouring import Colouring, scale
from tflq.face.report.html.differences import difference_colourings, distance_figure, error_figures


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
