"""A comparison of two sessions as a document: `schemas/session.schema.json`."""

from __future__ import annotations

import math

from tflq.comparison.sessions.results import ComparedStep, SessionComparison
from tflq.face.report.documents.session import FirstStepDocument, SessionDocument, StepDocument
from tflq.face.report.documents.shared import OperatorNameDocument, difference_document, model_document
from tflq.face.report.json import json_value
from tflq.statements import facts_of


def session_document(found: SessionComparison) -> SessionDocument:
    """Return the document of a comparison. Noise is in dB; null where all bits agree."""
    perplexities = found.perplexities
    return {
        "schema": "tflq/session/1",
        "verdict": found.verdict,
        "models": [model_document(facts) for facts in found.models],
        "between": list(found.names),
        "free": found.free,
        "prompt": found.prompt,
        "tokens": [list(text) for text in found.texts],
        "agreement": {"agree": found.agreement[0], "of": found.agreement[1]},
        "perplexities": None if perplexities is None else list(perplexities),
        "parted": found.parted,
        "first": None if found.first is None else _first(found),
        "steps": [_step(step) for step in found.steps],
        "notes": list(found.notes),
        "facts": facts_of(found.notes),
    }


def _first(found: SessionComparison) -> FirstStepDocument:
    first = found.first
    assert first is not None
    operator: OperatorNameDocument | None = (
        None if first.operator is None else {"index": first.operator[0], "op": first.operator[1]}
    )
    return {
        "step": first.step,
        "signature": first.signature,
        "position": first.position,
        "operator": operator,
        "band": first.band or None,
        "output": first.output or None,
        "slot": list(first.slot),
    }


def _step(step: ComparedStep) -> StepDocument:
    logits = step.logits
    return {
        "number": step.number,
        "signature": step.signature,
        "position": step.position,
        "tokens": list(step.tokens),
        "outputs": {name: difference_document(found) for name, found in step.outputs.items()},
        "noise": {name: _finite(value) for name, value in step.noise.items()},
        "logits": None
        if logits is None
        else {
            "noise": _finite(logits.noise),
            "divergence": json_value(logits.divergence),
            "choices": list(logits.choices),
            "losses": None if logits.losses is None else list(logits.losses),
        },
        "bands": [
            {"name": b.name, "compared": b.compared, "differing": b.differing, "noise": _finite(b.noise)}
            for b in step.bands
        ],
    }


def _finite(noise: float) -> float | str | None:
    """Return dB; null without noise, "-inf" without a finite ratio."""
    return None if noise == math.inf else "-inf" if not math.isfinite(noise) else noise
