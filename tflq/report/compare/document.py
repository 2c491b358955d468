"""A comparison of two models as a document: `schemas/compare.schema.json`."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from tflq.api.subject import ModelFacts
from tflq.quantization.judge.comparison import Agreement, Comparison
from tflq.quantization.judge.fidelity import Fidelity
from tflq.report.compare.lines import mean_error


def compare_document(first: ModelFacts, second: ModelFacts, found: Comparison) -> dict[str, Any]:
    """The comparison of two files."""
    return {
        "schema": "tflq/compare/1",
        "reference": asdict(first),
        "other": asdict(second),
        "comparison": comparison_document(found),
    }


def comparison_document(found: Comparison) -> dict[str, Any]:
    """All figures of a comparison; `first` and `worst` are positions in `tensors`."""
    return {
        "samples": found.samples,
        "sqnr": found.sqnr,
        "outputs": [_fidelity(output) for output in found.outputs],
        "tensors": [_fidelity(tensor) for tensor in found.tensors],
        "unmatched": found.unmatched,
        "first": _position(found, found.first),
        "worst": _position(found, found.worst),
        "agreement": None if found.agreement is None else _agreement(found.agreement),
    }


def _position(found: Comparison, tensor: Fidelity | None) -> int | None:
    return next((i for i, t in enumerate(found.tensors) if t is tensor), None)


def _fidelity(tensor: Fidelity) -> dict[str, Any]:
    return {
        "operator": tensor.index,
        "op": tensor.op,
        "name": tensor.name,
        "elements": tensor.elements,
        "sqnr": tensor.sqnr,
        "largest": tensor.largest,
        "mean": mean_error(tensor),
    }


def _agreement(found: Agreement) -> dict[str, Any]:
    labelled = None
    if found.accuracies is not None:
        before, after = found.accuracies
        labelled = {
            "reference": before,
            "other": after,
            "standard_error": found.standard_error,
            "gained": found.gained,
            "lost": found.lost,
        }
    divergence = found.divergence / found.samples
    return {
        "samples": found.samples,
        "rate": found.rate,
        "interval": list(found.interval),
        "divergence": None if math.isnan(divergence) else divergence,
        "flips": [asdict(flip) for flip in found.flips],
        "accuracy": labelled,
    }
