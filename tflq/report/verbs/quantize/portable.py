"""The part of a quantization's report about portability: the proof on the finished file, and what was rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tflq.proof import Word
from tflq.quantization.portable.outcome import Outcome
from tflq.report.blocks import Listing, Section, Table, Text
from tflq.report.numbers import counted
from tflq.report.verbs.prove.document import certificate_document
from tflq.report.verbs.prove.report import STYLES, claim_text, counts_text, profiles_text

_REWRITES = (("operators", ">"), ("operator", "<"), ("becomes", "<"), ("accuracy", "<"), ("bytes", ">"))
_OBSTACLES = (("#", ">"), ("operator", "<"), ("why", "<"), ("instead", "<"))
#: Rows of obstacles that text lists.
_MOST = 8


def portable_section(outcome: Outcome | None) -> Iterator[Section]:
    """Yield how far the model is proved portable, what stops it there, and what was rewritten."""
    if outcome is None:
        return
    proof = outcome.proof
    head = f"portable: {profiles_text(proof)}, {counted(len(proof.operators), 'operator')}: {counts_text(proof.counts)}"
    blocks = [Text(head, STYLES[proof.word]), Text(claim_text(proof), "good" if proof.word == Word.EQUAL else "warning")]
    if proof.refused:
        names = ", ".join(refusal.profile for refusal in proof.refused)
        blocks.append(Text(f"not covered, they refuse the model: {names}", "warning"))
    yield Section("portable", "The same bits everywhere", [*blocks, *_rewrites(outcome), *_obstacles(outcome)])


def _rewrites(outcome: Outcome) -> Iterator[Table]:
    together: dict[tuple[str, str, str], list[int]] = {}
    for rewrite in outcome.rewrites:
        together.setdefault((rewrite.op, rewrite.becomes, rewrite.cost), []).append(rewrite.bytes)
    rows = [(str(len(sizes)), op, becomes, cost, f"{sum(sizes):,}") for (op, becomes, cost), sizes in together.items()]
    if rows:
        yield Table(_REWRITES, rows, fold=counted(len(outcome.rewrites), "rewritten operator"), indent=1)


def _obstacles(outcome: Outcome) -> Iterator[Table | Listing]:
    rows = [(str(o.index), o.op, o.why, o.instead) for o in outcome.obstacles]
    if rows:
        yield Table(_OBSTACLES, rows, most=_MOST, rest="... and {left} more (--json has them all)", indent=1)


def portable_document(outcome: Outcome | None) -> dict[str, Any] | None:
    """Return rewrites, obstacles and the certificate's content; None if the recipe does not ask for it."""
    if outcome is None:
        return None
    return {
        "rewrites": [
            {"index": r.index, "op": r.op, "name": r.name, "becomes": r.becomes, "why": r.why, "cost": r.cost, "bytes": r.bytes}
            for r in outcome.rewrites
        ],
        "obstacles": [
            {"index": o.index, "op": o.op, "name": o.name, "why": o.why, "kept": o.kept, "instead": o.instead}
            for o in outcome.obstacles
        ],
        "certificate": certificate_document(outcome.proof.certificate()),
    }
