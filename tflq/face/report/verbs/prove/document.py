"""A proof as a document: `schemas/prove.schema.json`."""

from __future__ import annotations

from typing import cast

from tflq.escaping import shown
from tflq.face.report.documents.prove import (
    AnswerDocument,
    CountDocument,
    CoverageDocument,
    OperatorDocument,
    ProveDocument,
    VerdictDocument,
    WitnessDocument,
)
from tflq.face.report.documents.shared import model_document
from tflq.face.report.numbers import counted
from tflq.proof import Proof, Verdict, Witness
from tflq.proof.answers import AnswerSearch
from tflq.proof.certificate import reach, stated


def prove_document(proof: Proof, searched: AnswerSearch | None = None, path: str | None = None) -> ProveDocument:
    """Return the document of a proof, and of a search of another answer. `--witnesses` writes inputs of witnesses."""
    document: ProveDocument = {
        "schema": "tflq/prove/2",
        "model": model_document(proof.model),
        "profiles": list(proof.profiles),
        "not_covered": [{"profile": refusal.profile, "reason": refusal.reason} for refusal in proof.refused],
        "verdict": proof.word,
        "counts": cast(CountDocument, {word.value: count for word, count in proof.counts.items()}),
        "operators": [
            cast(OperatorDocument, {**stated(o), "verdicts": [_verdict(v) for v in o.verdicts]})
            for o in proof.operators
        ],
        "coverage": [cast(CoverageDocument, reach(one)) for one in proof.coverage],
    }
    if searched is not None:
        document["answer"] = _answer(searched, path)
    return document


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


def _answer(searched: AnswerSearch, path: str | None) -> AnswerDocument:
    found = searched.found
    return {
        "tried": searched.tried,
        "output": None if found is None else searched.names[found.output],
        "row": None if found is None else found.row,
        "answers": None if found is None else list(found.answers),
        "file": None if found is None else path,
    }


def _verdict(verdict: Verdict) -> VerdictDocument:
    return {
        "first": verdict.first,
        "second": verdict.second,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "witness": None if verdict.witness is None else _witness(verdict.witness),
    }


def _witness(witness: Witness) -> WitnessDocument:
    return {
        "inputs": sorted(witness.inputs),
        "output": witness.output,
        "element": list(witness.element),
        "first": witness.first,
        "second": witness.second,
        "differing": witness.count,
        "accumulator": witness.accumulator,
    }
