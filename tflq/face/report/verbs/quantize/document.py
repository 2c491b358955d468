"""A quantization as a document: `schemas/quantize.schema.json`."""

from __future__ import annotations

import math

from tflq.face.report.documents.quantize import (
    BudgetTrialDocument,
    EightBitsDocument,
    NormsDocument,
    ProofDocument,
    QuantizeDocument,
    RankingDocument,
)
from tflq.face.report.documents.quantize_weights import CheckDocument
from tflq.face.report.documents.shared import facts_document, fields_of, runtime_document
from tflq.face.report.verbs.compare.document import comparison_document
from tflq.face.report.verbs.quantize.advice import advice_document
from tflq.face.report.verbs.quantize.methods import left_text
from tflq.face.report.verbs.quantize.portable import portable_document
from tflq.face.report.verbs.quantize.runtimes import agreement_document
from tflq.face.report.verbs.quantize.tails import tails_document
from tflq.face.report.verbs.quantize.texts import Making, next_step
from tflq.quantization.judge.budget import front
from tflq.quantization.judge.check import Check
from tflq.quantization.judge.eights import Eights
from tflq.quantization.judge.norms import WideNorms
from tflq.quantization.judge.selection import Ranked, Score
from tflq.quantization.recipe.files import digest, document_of, plain
from tflq.quantization.recipe.recipe import Norms
from tflq.quantization.result import Report


def quantize_document(making: Making) -> QuantizeDocument:
    """Return all figures of a quantization. `ranking[0]` was taken."""
    report = making.report
    return {
        "schema": "tflq/quantize/1",
        "model": facts_document(making.source),
        "output": facts_document(making.output),
        "calibration": making.calibration,
        "recipe": document_of(report.recipe),
        "recipe_digest": digest(report.recipe),
        "ranking": [_rank(candidate) for candidate in report.ranking],
        "proof": _proof(report.ranking[0].proof),
        "held_back": report.held_back,
        "comparison": comparison_document(report.comparison),
        "check": check_document(report.check),
        "kept_float": [fields_of(remark) for remark in report.kept_float],
        "notes": [fields_of(remark) for remark in report.notes],
        "spared": [fields_of(remark) for remark in report.spared],
        "trials": _trials(report),
        "sensitivities": [fields_of(sensitivity) for sensitivity in report.sensitivities],
        "wins_back": None if report.wins_back is None else fields_of(report.wins_back),
        "norms": _norms(report.norms),
        "eight_bits": _eight_bits(report.eights),
        "streamed": None if report.streamed is None else fields_of(report.streamed),
        "tails": tails_document(report.tails),
        "outlying": list(report.outlying),
        "data": list(report.data),
        "interrupted": report.interrupted,
        "runtimes": None if report.agreed is None else agreement_document(report.agreed),
        "portable": portable_document(report.portable),
        "advice": advice_document(making.advice),
        "next": next_step(making),
    }


def _trials(report: Report) -> list[BudgetTrialDocument]:
    best = front(report.trials)
    return [
        {
            "spared": trial.spared,
            "size": trial.size,
            "sqnr": trial.sqnr,
            "agreement": trial.agreement,
            "taken": trial.spared == len(report.spared),
            "beaten": trial not in best,
        }
        for trial in report.trials
    ]


def _norms(norms: WideNorms | None) -> NormsDocument | None:
    if norms is None:
        return None
    return {
        "operators": list(norms.operators),
        "form": "float" if norms.form is Norms.FLOAT else "int16",
        "before": norms.before,
        "after": norms.after,
        "added": norms.added,
    }


def _eight_bits(eights: Eights | None) -> EightBitsDocument | None:
    if eights is None:
        return None
    return {
        "operators": sorted(eights.operators),
        "candidates": eights.candidates,
        "before": eights.before,
        "after": eights.after,
        "added": eights.added,
    }


def _rank(candidate: Ranked) -> RankingDocument:
    return {
        "methods": plain(candidate.methods),
        "sqnr": None if candidate.score is None else candidate.sqnr,
        "samples": None if candidate.score is None else candidate.score.samples,
        "ratios": {} if candidate.score is None else candidate.score.ratios,
        "divergence": _known(candidate.divergence),
        "differing": None if candidate.score is None else candidate.differing,
        "agreement": _known(candidate.agreement),
        "error": candidate.error or None,
        "left": None if candidate.left is None else left_text(candidate.left),
    }


def _proof(score: Score | None) -> ProofDocument | None:
    if score is None:
        return None
    share, ratio = score.promise or (None, None)
    same = None if score.divergences is None else score.same / score.samples
    return {"samples": score.samples, "sqnr": score.sqnr, "agreement": same, "share": share, "ratio": ratio}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def check_document(check: Check) -> CheckDocument:
    """Return the verification of a written model, or why there is none."""
    report = check.report
    if report is None:
        return {"verdict": None, "reason": str(check.error)}
    return {
        "verdict": report.verdict.value,
        "reason": None,
        "profile": report.profile,
        "runtime": runtime_document(report.against),
        "compared": report.compared,
        "differing": report.differing,
    }
