"""The page about a model, or about a model and a dump, a recording or another model; and its colourings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.comparison.inspection.model_diff import diff
from tflq.comparison.verification import verify
from tflq.comparison.verification.goldens import model_of
from tflq.diagnosis.findings import investigate
from tflq.diagnosis.signatures import only_dumps
from tflq.engine.api.subject import subject
from tflq.engine.profiles import by_name
from tflq.errors import TflqError
from tflq.face.report.graph.colouring import Colouring
from tflq.face.report.graph.standard import facts_of, view_of
from tflq.face.report.render.html import page_of
from tflq.face.report.verbs.compare.figures import fidelity_colourings
from tflq.face.report.verbs.compare.report import compare_report
from tflq.face.report.verbs.diff import diff_colourings, diff_report
from tflq.face.report.verbs.explain.figures import explain_colourings
from tflq.face.report.verbs.explain.report import explain_report
from tflq.face.report.verbs.inspect.report import inspect_report
from tflq.face.report.verbs.verify.report import verify_colourings, verify_report
from tflq.verbs.compare import compare


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A page and its colourings, in the order in which it offers them."""

    page: str
    colourings: Sequence[Colouring]


def picture(
    model: str,
    other: str | None = None,
    profile: str = "litert-ref",
    data: str | None = None,
    signature: str | None = None,
) -> Picture:
    """Make the page about a model.

    Args:
        model: Path of a `.tflite` file.
        other: A recording of `tflq record` (as `verify` shows it), a dump (as `explain` does), or another model (as
            `compare` does on `data`, as `diff` does without). None for the model alone, as `inspect` does.
        profile: Whose arithmetic is computed.
        data: Inputs for both models.
        signature: The signature to draw; None for the first.

    Raises:
        TflqError: As the verbs do.
    """
    if other is None:
        view = view_of(model, profile, signature)
        return Picture(page_of(inspect_report(view.inspection), view), facts_of(view.inspection))
    if other.endswith(".tflite"):
        return _two_models(model, other, profile, data, signature)
    view = view_of(model, profile, signature)
    if _is_recording(other):
        report = verify(model, Path(other), profile=profile, signature=signature)
        return Picture(page_of(verify_report(report), view), verify_colourings(report) or facts_of(view.inspection))
    part, dumps = only_dumps(subject(model).model, other, None, None, signature)
    findings = investigate(part.model, dumps, by_name(profile))
    if part.root.subgraph != view.inspection.subgraph:
        view = view_of(model, profile, part.name)
    return Picture(page_of(explain_report(findings, model, other), view), explain_colourings(findings))


def _two_models(model: str, other: str, profile: str, data: str | None, signature: str | None) -> Picture:
    view = view_of(model, profile, signature)
    if data is None:
        differences = diff(model, other, profile, signature)
        return Picture(page_of(diff_report(differences), view), diff_colourings(view, differences))
    comparison = compare(model, other, data, signature=signature)
    page = page_of(compare_report(subject(model).facts, subject(other).facts, comparison), view)
    return Picture(page, fidelity_colourings(comparison))


def _is_recording(path: str) -> bool:
    """Return True if a file is a recording that names its model."""
    try:
        return os.path.isfile(path) and bool(model_of(path))
    except TflqError:
        return False
