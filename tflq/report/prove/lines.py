"""Proofs in lines: one table a pair of profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from tflq.proof import ON_ONE_LIBM, OperatorProof, Proof, Verdict, Word
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

STYLES = {Word.EQUAL: "good", Word.DIFFERS: "bad", Word.UNDECIDED: "warning"}
_COLUMNS = [
    ("#", ">"),
    ("operator", "<"),
    ("verdict", "<"),
    ("how", "<"),
    ("element", "<"),
    ("first", ">"),
    ("second", ">"),
]


def proof_lines(proof: Proof) -> Iterator[Line]:
    """Each pair: how many operators have which verdict, then all that are not equal by their constants."""
    for number, (first, second) in enumerate(combinations(proof.profiles, 2)):
        if number:
            yield Line("")
        counts = proof.counts(first, second)
        total = counted(sum(counts.values()), "operator")
        worst = next((w for w in (Word.DIFFERS, Word.UNDECIDED) if counts[w]), Word.EQUAL)
        said = ", ".join(f"{counts[word]:,} {word.value}" for word in Word if counts[word])
        yield Line(f"{first} and {second}: {total}: {said or 'nothing to compare'}", STYLES[worst])
        pairs = [(o, v) for o in proof.operators for v in o.verdicts if (v.first, v.second) == (first, second)]
        rows = [_row(operator, verdict) for operator, verdict in pairs if not _is_plain(verdict)]
        if rows:
            yield from table(_COLUMNS, rows)
        if worst == Word.EQUAL and pairs:
            yield Line(claim(verdict for _, verdict in pairs), "good")


def claim(equal: Iterable[Verdict]) -> str:
    """Return what follows for the model if all of these verdicts are equal."""
    is_bound = any(verdict.reason.endswith(ON_ONE_LIBM) for verdict in equal)
    return "the same bits for every input of the shapes in the file" + (ON_ONE_LIBM if is_bound else "")


def _is_plain(verdict: Verdict) -> bool:
    """Whether there is nothing to tell but that both have the same constants."""
    return verdict.word == Word.EQUAL and verdict.reason.startswith("the same kernel")


def _row(operator: OperatorProof, verdict: Verdict) -> tuple[str, ...]:
    witness = verdict.witness
    values = ("", "", "") if witness is None else (str(list(witness.element)), str(witness.first), str(witness.second))
    return operator.place, operator.op, verdict.word.value, verdict.reason, *values
