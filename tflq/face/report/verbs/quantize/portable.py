"""The part of a quantization's report about portability: the proof on the finished file, and what was rewritten."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.face.report.blocks import Section, Table, Text
from tflq.face.report.documents.quantize import PortableDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.prove.page import STYLES
from tflq.face.report.verbs.prove.report import claim_text, counts_text, profiles_text
from tflq.proof import Word
from tflq.quantization.portable.outcome import Outcome

_REWRITES = (("operators", ">"), ("operator", "<"), ("becomes", "<"), ("accuracy", "<"), ("bytes", ">"))
_OBSTACLES = (("#", ">"), ("operator", "<"), ("why", "<"), ("instead", "<"))
#: Rows of obstacles that text lists.
_MOST = 8


def portable_facts(outcome: Outcome | None) -> Iterator[Text]:
    """Yield how far the model is proved portable; nothing if the recipe does not ask for it."""
    if outcome is None:
        return
    proof = outcome.proof
    head = f"{profiles_text(proof)}, {counted(len(proof.operators), 'operator')}: {counts_text(proof.counts)}"
    yield Text(f"portable: {head}", STYLES[proof.word])
    yield Text(claim_text(proof), "good" if proof.word == Word.EQUAL else "warning")
    if proof.refused:
        names = ", ".join(refusal.profile for refusal in proof.refused)
        yield Text(f"not covered, they refuse the model: {names}", "warning")


def portable_section(outcome: Outcome | None) -> Iterator[Section]:
    """Yield what was rewritten, and what keeps the model from being portable."""
    if outcome is not None and (outcome.rewrites or outcome.obstacles):
        yield Section("portable", "What makes it portable", [*_rewrites(outcome), *_obstacles(outcome)])


def _rewrites(outcome: Outcome) -> Iterator[Table]:
    together: dict[tuple[str, str, str], list[int]] = {}
    for rewrite in outcome.rewrites:
        together.setdefault((rewrite.op, rewrite.becomes, rewrite.cost), []).append(rewrite.bytes)
    rows = [(str(len(sizes)), op, becomes, cost, f"{sum(sizes):,}") for (op, becomes, cost), sizes in together.items()]
    if rows:
        yield Table(_REWRITES, rows, fold=counted(len(outcome.rewrites), "rewritten operator"), indent=1)


def _obstacles(outcome: Outcome) -> Iterator[Table]:
    rows = [(str(o.index), o.op, o.why, o.instead) for o in outcome.obstacles]
    if rows:
        yield Table(_OBSTACLES, rows, most=_MOST, rest="... and {left} more (--json has them all)", indent=1)


def portable_document(outcome: Outcome | None) -> PortableDocument | None:
    """Return rewrites, obstacles and the certificate's content; None if the recipe does not ask for it."""
    if outcome is None:
        return None
    return {
        "rewrites": [fields_of(rewrite) for rewrite in outcome.rewrites],
        "obstacles": [fields_of(obstacle) for obstacle in outcome.obstacles],
        "left": list(outcome.left),
        "certificate": outcome.proof.certificate().document,
    }
