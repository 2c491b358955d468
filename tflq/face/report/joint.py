"""Causes that many cases or operators share, and changes of releases: as blocks and documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.siblings import Joint, JointCause, Reproduced
from tflq.engine.profiles.history import ReleaseChange
from tflq.face.report.blocks import Block, Fold, Section, TableBlock, Text
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.shared import NearestDocument
from tflq.face.report.wording import counted, listed

#: Limits on rows of causes, on names of other causes and their characters, and on operators of a cause.
_CAUSES, _OTHERS, _SHORT, _OPERATORS = 8, 3, 40, 4


def joint_blocks(causes: Sequence[JointCause], unit: str = "case") -> Iterator[Block]:
    """Yield a table of causes; pages have a table of operators and types for each that has evidence.

    `unit` is what is reproduced: a case or an operator.
    """
    if not causes:
        return
    columns = ((f"failing {unit}s", ">"), ("certainty", "<"), ("look at", "<"), ("operators", "<"), ("cause", "<"))
    rows = [
        (counts_text(cause), certainty_text(cause), cause.first, operators_text(cause), _with_others(cause))
        for cause in causes
    ]
    yield TableBlock(columns, rows, most=_CAUSES, rest="and {left} more causes (--json has all)")
    for cause in causes:
        if cause.kernels:
            yield Fold(f"{cause.name}: by operator and types", [_by_kernel(cause.kernels, unit)])


def joint_section(joint: Joint) -> Iterator[Block]:
    """Yield the causes that operators of a dump share, and the nearest arithmetic of those without one."""
    blocks = list(joint_blocks(joint.causes, "operator"))
    rows = [(f"{k.op} {k.types}", f"{name}: {k.failing:,} of {k.all_failing:,}") for name, k in joint.nearest]
    if rows:
        blocks.append(TableBlock((("no arithmetic known", "<"), ("nearest", "<")), rows, most=_CAUSES))
    if blocks:
        yield Section("joint", "One arithmetic for many operators", blocks)


def operators_text(cause: JointCause) -> str:
    """Return the operators of a cause with the numbers of their failing cases, the most first."""
    counts: Counter[str] = Counter()
    for kernel in cause.kernels:
        counts[kernel.op] += kernel.failing
    ordered = sorted(cause.operators, key=lambda op: -counts[op])
    return listed([f"{counts[op]:,} {op}" if counts[op] else op for op in ordered], _OPERATORS, last=", ")


def counts_text(cause: JointCause) -> str:
    """Return the number of failing cases of a cause's groups, with how many it reproduces if all were compared."""
    if not cause.kernels:
        return f"{cause.failing:,}"
    return f"{'all' if len(cause.names) == cause.failing else f'{len(cause.names):,} of'} {cause.failing:,}"


def certainty_text(cause: JointCause) -> str:
    """Return whether a cause is certain, and the reason if it is not; empty if it has no evidence of its own."""
    if cause.certainty in (None, Certainty.CERTAIN):
        return "" if cause.certainty is None else "certain"
    kernels = cause.kernels
    missed = [kernel for kernel in kernels if not kernel.is_whole]
    little = [kernel for kernel in kernels if kernel.is_whole and not kernel.is_certain]
    reasons = []
    if cause.others:
        reasons.append("others give the same bits")
    if missed:
        reasons.append(f"misses {sum(k.cases - k.reproduced for k in missed):,} of {sum(k.cases for k in kernels):,}")
    if little:
        reasons.append(f"little evidence in {len(little)} of {counted(len(kernels), 'kernel')}")
    return f"likely: {', '.join(reasons)}"


def _with_others(cause: JointCause) -> str:
    short = [name for name in cause.others if len(name) <= _SHORT][:_OTHERS]
    more = len(cause.others) - len(short)
    others = ", ".join([*short, *([f"{more} more"] if more else [])])
    return cause.name + (f" (also {others})" if others else "")


def _by_kernel(kernels: Sequence[Reproduced], unit: str) -> TableBlock:
    columns = [(c, "<") for c in ("operator", "types", f"{unit}s", "failing", "bits of evidence")]
    rows = [
        (
            k.op,
            k.types,
            f"{k.reproduced:,} of {k.cases:,}",
            f"{k.failing:,} of {k.all_failing:,}",
            f"{k.bits:,} of {k.needed:,} needed",
        )
        for k in kernels
    ]
    return TableBlock(columns, rows)


def nearest_document(joint: Joint) -> list[NearestDocument]:
    """Return the nearest arithmetic of each kernel without one."""
    return [filled(NearestDocument, kernel, name=name) for name, kernel in joint.nearest]


#: Changes that text lists; a document has all.
_LISTED = 5


def change_blocks(changes: Iterable[ReleaseChange], one: str, other: str) -> Iterator[Block]:
    """Yield what releases changed between two profiles, a line each; without a change, that both are known."""
    changes = list(changes)
    for change in changes[:_LISTED]:
        where = f"{change.op} ({change.types}), changed between {change.last} and {change.first}"
        yield Text(f"{where}: {one}: {change.before}; {other}: {change.after}")
    if len(changes) > _LISTED:
        yield Text(f"{len(changes) - _LISTED} more changes (--json has all)")
    if not changes:
        yield Text(f"tflq profiles diff {one} {other} lists the operators that the two compute differently")
