"""Proofs in three lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from tflq.proof import Proof, Word
from tflq.report.card import Card
from tflq.report.prove.lines import STYLES, claim, proof_lines


def proof_card(proof: Proof) -> Card:
    """The verdict, the first operator that is not equal, and where inputs that tell are."""
    counts = Counter(verdict.word for operator in proof.operators for verdict in operator.verdicts)
    said = ", ".join(f"{counts[word]:,} {word.value}" for word in Word if counts[word]) or "nothing to compare"
    apart = ((o, v) for o in proof.operators for v in o.verdicts if v.word == proof.word != Word.EQUAL)
    where = (f"First: operator {o.place} {o.op}, {v.first} and {v.second}: {v.reason}" for o, v in apart)
    return Card(
        f"{proof.model.path or 'model'}: {' and '.join(proof.profiles)}: {said}",
        next(where, claim(verdict for operator in proof.operators for verdict in operator.verdicts)),
        "Next: .operators[i].verdicts; .witness of a verdict holds inputs that tell",
        STYLES[proof.word],
        lambda: proof_lines(proof),
    )


CARDS: Mapping[str, Callable[[Proof], Card]] = {"Proof": proof_card}
