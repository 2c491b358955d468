"""A proof as a document: `schemas/prove.schema.json`."""

from __future__ import annotations

from typing import Any

from tflq.face.report.documents import model_document
from tflq.proof import Proof, Verdict, Witness
from tflq.proof.certificate import reached, stated


def prove_document(proof: Proof) -> dict[str, Any]:
    """Return the document of a proof. `--witnesses` writes the inputs of witnesses."""
    return {
        "schema": "tflq/prove/2",
        "model": model_document(proof.model),
        "profiles": list(proof.profiles),
        "not_covered": [{"profile": refusal.profile, "reason": refusal.reason} for refusal in proof.refused],
        "verdict": proof.word.value,
        "counts": {word.value: count for word, count in proof.counts.items()},
        "operators": [{**stated(o), "verdicts": [_verdict(v) for v in o.verdicts]} for o in proof.operators],
        "coverage": [reached(one) for one in proof.coverage],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "first": verdict.first,
        "second": verdict.second,
        "verdict": verdict.word.value,
        "reason": verdict.reason,
        "witness": None if verdict.witness is None else _witness(verdict.witness),
    }


def _witness(witness: Witness) -> dict[str, Any]:
    return {
        "inputs": sorted(witness.inputs),
        "output": witness.output,
        "element": list(witness.element),
        "first": witness.first,
        "second": witness.second,
        "differing": witness.count,
        "accumulator": witness.accumulator,
    }
