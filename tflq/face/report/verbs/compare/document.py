"""A comparison of two models as a document: `schemas/compare.schema.json`."""

from __future__ import annotations

import math

from tflq.engine.api.subject import ModelFacts
from tflq.face.report.documents.compare import (
    AccuracyDocument,
    AgreementDocument,
    CompareDocument,
    ComparisonDocument,
    FidelityDocument,
    PartDocument,
)
from tflq.face.report.documents.shared import facts_document, fields_of
from tflq.face.report.verbs.compare.groups import figures_document
from tflq.face.report.verbs.compare.runtimes import runtimes_document
from tflq.face.report.verbs.compare.texts import column_texts, cut_texts, mean_error, unit_texts
from tflq.quantization.judge.agreement import Agreement
from tflq.quantization.judge.comparison import Comparison
from tflq.quantization.judge.fidelity import Fidelity
from tflq.quantization.judge.parts import MOST_VALUES, Part


def compare_document(first: ModelFacts, second: ModelFacts, comparison: Comparison) -> CompareDocument:
    """Return the document of a comparison of two files."""
    return {
        "schema": "tflq/compare/1",
        "reference": facts_document(first),
        "other": facts_document(second),
        "comparison": comparison_document(comparison),
        "runtimes": runtimes_document(comparison),
    }


def comparison_document(comparison: Comparison) -> ComparisonDocument:
    """Return all figures of a comparison; `first` and `worst` are positions in `tensors`."""
    return {
        "samples": comparison.samples,
        "sqnr": comparison.sqnr,
        "outputs": [_fidelity(output) for output in comparison.outputs],
        "parts": [_part(part) for part in comparison.parts],
        "rescaled": [_fidelity(tensor) for tensor in comparison.rescaled],
        "wide": [
            {"operator": s.index, "op": s.op, "name": s.name, "range": [s.low, s.high], "seen": list(s.seen)}
            for s in comparison.wide
        ],
        "tensors": [_fidelity(tensor) for tensor in comparison.tensors],
        "unmatched": comparison.unmatched,
        "first": _position(comparison, comparison.first),
        "worst": _position(comparison, comparison.worst),
        "agreement": None if comparison.agreement is None else _agreement(comparison.agreement),
        "figures": figures_document(comparison.figures),
        "remarks": [*comparison.remarks, *unit_texts(comparison), *column_texts(comparison), *cut_texts(comparison)],
    }


def _position(comparison: Comparison, tensor: Fidelity | None) -> int | None:
    return next((i for i, t in enumerate(comparison.tensors) if t is tensor), None)


def _fidelity(tensor: Fidelity) -> FidelityDocument:
    return {
        "operator": tensor.index,
        "op": tensor.op,
        "name": tensor.name,
        "elements": tensor.elements,
        "sqnr": tensor.sqnr,
        "largest": tensor.largest,
        "mean": mean_error(tensor),
    }


def _part(part: Part) -> PartDocument:
    values, given = (min(len(known), MOST_VALUES) for known in (part.values, part.given))
    return {**_fidelity(part.fidelity), "output": part.output, "values": values, "reference_values": given}


def _agreement(agreement: Agreement) -> AgreementDocument:
    labelled: AccuracyDocument | None = None
    if agreement.accuracies is not None:
        before, after = agreement.accuracies
        labelled = {
            "reference": before,
            "other": after,
            "standard_error": agreement.standard_error,
            "gained": agreement.gained,
            "lost": agreement.lost,
        }
    divergence = agreement.divergence / agreement.samples
    return {
        "samples": agreement.samples,
        "rate": agreement.rate,
        "interval": list(agreement.interval),
        "divergence": None if math.isnan(divergence) else divergence,
        "flips": [fields_of(flip) for flip in agreement.flips],
        "accuracy": labelled,
        "tied": agreement.tied,
    }
