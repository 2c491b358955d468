"""How outputs of several parts were treated: the float tail that was taken, and what its alternatives give."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.face.report.blocks import Section, Table, Text
from tflq.face.report.documents.quantize import TailDocument
from tflq.face.report.documents.shared import fields_of
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.compare.groups import group_text, groups_text
from tflq.quantization.judge.tails import APART, NONE, WIDE, Tail, Tails

_COLUMNS = (("treatment", "<"), ("operators", ">"), ("bytes", ">"), ("multiply-accumulates", ">"), ("outputs", "<"))
#: Treatments that text lists.
_LISTED = 8
#: The option that asks for a treatment.
_OPTIONS = {APART: "--split-outputs", NONE: "--float-tail none"}


def tail_text(tails: Tails | None) -> str:
    """Return what the float tail is, what it wins back and what it costs; nothing if there is none."""
    plain = None if tails is None else next((t for t in tails.tried if t.name == NONE), None)
    if tails is None or plain is None or tails.taken in ("", NONE):
        return ""
    best = tails.best
    won = ", ".join(
        f"{group_text(name, best.ratios[name])} instead of {_before(name, ratio)}"
        for name, ratio in plain.ratios.items()
        if name in best.ratios
    )
    return (
        f"float tail: {counted(best.operators, 'operator')} from {best.first} {best.op} on compute in float, as one "
        f"scale would lose parts of the outputs: {won}, for {best.size - plain.size:,} bytes more and {best.share:.2%} "
        "of the multiply-accumulates"
    )


def _before(name: str, ratio: float) -> str:
    return group_text(name, ratio).removeprefix(f"{name} ").removeprefix("off by ").removesuffix(" of their size")


def tail_sections(tails: Tails | None) -> Iterator[Section]:
    """Yield the treatments that were tried, with what each gives on held-back samples and costs."""
    if tails is None or len(tails.tried) < 2:
        return
    rows = [_row(tail, is_taken=tail.name == tails.taken) for tail in sorted(tails.tried, key=lambda tail: tail.loss)]
    rest = "... and {left} more (--json has them all)"
    table = Table(_COLUMNS, rows, _LISTED, rest, counted(len(rows), "treatment"), indent=1)
    head = Text("Treatments of the outputs, by the first configuration, on samples that it was not fitted to:")
    yield Section("tails", "Treatments of the outputs", [head, table])


def _row(tail: Tail, *, is_taken: bool) -> list[str]:
    name = tail.name + (": taken" if is_taken else f" ({_option(tail)})" if _option(tail) else "")
    count = str(tail.operators) if tail.operators else ""
    return [name, count, f"{tail.size:,}", f"{tail.share:.2%}" if tail.operators else "", groups_text(tail.ratios)]


def _option(tail: Tail) -> str:
    return "" if tail.name == WIDE else _OPTIONS.get(tail.name, f"--float-tail {tail.first}")


def tails_document(tails: Tails | None) -> TailDocument | None:
    """Return the treatments as a document."""
    if tails is None:
        return None
    return {"taken": tails.taken or None, "tried": [fields_of(tail) for tail in tails.tried]}
