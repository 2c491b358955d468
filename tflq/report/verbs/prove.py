"""The report of `tflq prove`: for each pair of profiles, the verdict on every operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from tflq.proof import ON_ONE_LIBM, OperatorProof, Proof, Verdict, Witness, Word
from tflq.report.blocks import Block, Brief, Gap, Report, Table, Text
from tflq.report.blocks import Verdict as VerdictBlock
from tflq.report.documents import model_document
from tflq.report.numbers import counted

_STYLES = {Word.EQUAL: "good", Word.DIFFERS: "bad", Word.UNDECIDED: "warning"}
_COLUMNS = [
    ("#", ">"),
    ("operator", "<"),
    ("verdict", "<"),
    ("how", "<"),
    ("element", "<"),
    ("first", ">"),
    ("second", ">"),
]


def prove_report(proof: Proof) -> Report:
    """Build the report: for each pair the counts, then the operators that are not equal by their constants alone."""
    return Report("prove", list(_blocks(proof)))


def prove_card(proof: Proof) -> Report:
    """Build the report with the verdict on all pairs together."""
    counts = Counter(verdict.word for operator in proof.operators for verdict in operator.verdicts)
    apart = ((o, v) for o in proof.operators for v in o.verdicts if v.word == proof.word != Word.EQUAL)
    where = (f"First: operator {o.place} {o.op}, {v.first} and {v.second}: {v.reason}" for o, v in apart)
    brief = Brief(
        next(where, _claim(verdict for operator in proof.operators for verdict in operator.verdicts)),
        "Next: .operators[i].verdicts; .witness of a verdict holds inputs that show the difference",
        f"{proof.model.path or 'model'}: {' and '.join(proof.profiles)}: {_counts_text(counts)}",
    )
    return Report("prove", [*_blocks(proof), brief])


def _blocks(proof: Proof) -> Iterator[Block]:
    for number, (first, second) in enumerate(combinations(proof.profiles, 2)):
        if number:
            yield Gap()
        counts = proof.counts(first, second)
        total = counted(sum(counts.values()), "operator")
        worst = next((w for w in (Word.DIFFERS, Word.UNDECIDED) if counts[w]), Word.EQUAL)
        yield VerdictBlock(f"{total}: {_counts_text(counts)}", _STYLES[worst], subject=f"{first} and {second}")
        pairs = [(o, v) for o in proof.operators for v in o.verdicts if (v.first, v.second) == (first, second)]
        yield Table(_COLUMNS, [_row(operator, verdict) for operator, verdict in pairs if not _is_plain(verdict)])
        if worst == Word.EQUAL and pairs:
            yield Text(_claim(verdict for _, verdict in pairs), "good")


def _counts_text(counts: Mapping[Word, int]) -> str:
    return ", ".join(f"{counts[word]:,} {word.value}" for word in Word if counts[word]) or "nothing to compare"


def _claim(equal: Iterable[Verdict]) -> str:
    """Return what follows for the model if all of these verdicts are equal."""
    is_bound = any(verdict.reason.endswith(ON_ONE_LIBM) for verdict in equal)
    return "the same bits for every input of the shapes in the file" + (ON_ONE_LIBM if is_bound else "")


def _is_plain(verdict: Verdict) -> bool:
    """Return True if both profiles have the same kernel with the same constants."""
    return verdict.word == Word.EQUAL and verdict.reason.startswith("the same kernel")


def _row(operator: OperatorProof, verdict: Verdict) -> tuple[str, ...]:
    witness = verdict.witness
    values = ("", "", "") if witness is None else (str(list(witness.element)), str(witness.first), str(witness.second))
    return operator.place, operator.op, verdict.word.value, verdict.reason, *values


def prove_document(proof: Proof) -> dict[str, Any]:
    """Return the document: `schemas/prove.schema.json`. `--witnesses` writes the inputs of witnesses."""
    return {
        "schema": "tflq/prove/1",
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
