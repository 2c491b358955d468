"""A proof as a document: `schemas/prove.schema.json`."""

from __future__ import annotations

from typing import Any

from tflq.escaping import shown
from tflq.face.report.documents import model_document
from tflq.face.report.numbers import counted
from tflq.proof import Proof, Verdict, Witness
from tflq.proof.answers import AnswerSearch
from tflq.proof.certificate import reached, stated


def prove_document(proof: Proof, searched: AnswerSearch | None = None, path: str | None = None) -> dict[str, Any]:
    """Return the document of a proof, and of a search of another answer. `--witnesses` writes inputs of witnesses."""
    return {
        "schema": "tflq/prove/2",
        "model": model_document(proof.model),
        "profiles": list(proof.profiles),
        "not_covered": [{"profile": refusal.profile, "reason": refusal.reason} for refusal in proof.refused],
        "verdict": proof.word.value,
        "counts": {word.value: count for word, count in proof.counts.items()},
        "operators": [{**stated(o), "verdicts": [_verdict(v) for v in o.verdicts]} for o in proof.operators],
        "coverage": [reached(one) for one in proof.coverage],
        **({} if searched is None else {"answer": _answer(searched, path)}),
    }


def answer_text(searched: AnswerSearch) -> str:
    """Return the result of a search in a sentence."""
    first, second = searched.profiles
    found = searched.found
    if found is None:
        return f"answer: none of {searched.tried:,} inputs changes an arg-max; this is no proof"
    row = f" in row {found.row}" if found.row else ""
    return (
        f"answer: output {shown(searched.names[found.output])} chooses {found.answers[0]} under {first} and "
        f"{found.answers[1]} under {second}{row}; found after {counted(searched.tried, 'input')}"
    )


def _answer(searched: AnswerSearch, path: str | None) -> dict[str, Any]:
    found = searched.found
    return {
        "tried": searched.tried,
        "output": None if found is None else searched.names[found.output],
        "row": None if found is None else found.row,
        "answers": None if found is None else list(found.answers),
        "file": None if found is None else path,
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
