"""Proofs as a document: `schemas/prove.schema.json`."""

from __future__ import annotations

from typing import Any

from tflq.proof import Proof, Verdict, Witness, Word
from tflq.report.documents import model_document

SCHEMA = "tflq/prove/1"


def proof_document(proof: Proof) -> dict[str, Any]:
    """Return every operator under every pair. Inputs of witnesses are left out: `--witnesses` writes them."""
    return {
        "schema": SCHEMA,
        "model": model_document(proof.model),
        "profiles": list(proof.profiles),
        "verdict": proof.word.value,
        "operators": [
            {"subgraph": o.subgraph, "index": o.index, "op": o.op, "verdicts": [_verdict(v) for v in o.verdicts]}
            for o in proof.operators
        ],
        "counts": {w.value: sum(v.word == w for o in proof.operators for v in o.verdicts) for w in Word},
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
