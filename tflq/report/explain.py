"""What a dump was found to be: which operator, how far, which way, and why. Lines, and documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from shlex import quote
from typing import Any

from tflq.report.layout import Line, table
from tflq.verification.explain import Explanation
from tflq.verification.localize import Located

#: Partial hypotheses that are shown.
_PARTIAL = 5


def explain_lines(
    model: str, dump: str, found: Sequence[Located], explanation: Explanation | None, unknown: Sequence[str]
) -> Iterator[Line]:  # fmt: skip
    """Verdict; first divergent operator; how many, how far, which way; cause with its evidence; what to type next."""
    differing = [o for o in found if o.differs]
    compared = sum(bool(o.differences) for o in found)
    verdict = verdict_of(found)
    style = {"same": "good", "differs": "bad"}.get(verdict, "warning")
    yield Line(
        f"{verdict.upper()} {len(differing)} of {compared} operators compared; {len(found)} in the model", style
    )  # fmt: skip
    if differing:
        yield Line(f"First divergent operator: {differing[0].index} {differing[0].op}")
    if explanation is not None:
        where = next(o for o in found if o.index == explanation.index)
        for tensor, d in where.differences.items():
            yield Line(f"  operator {where.index} {where.op}, tensor {tensor}: {d.problem or ''}".rstrip(": "))
            yield Line(
                f"  {d.differing:,} of {d.elements:,} elements differ, by up to {d.largest:,} {d.unit}: "
                f"{d.above:,} above, {d.below:,} below, {d.bias:+.3f} on average"
            )
            if d.histogram:
                yield Line("  dump - profile: " + ", ".join(f"{step:+d}: {count:,}" for step, count in d.histogram))
            if d.first is not None:
                yield Line(f"  first at {list(d.first.index)}: profile {d.first.expected}, dump {d.first.got}")
        for place in explanation.places:
            yield Line(f"  {place}")
        if where.assumed:
            yield Line(f"  computed, as the dump lacks them: input tensors {list(where.assumed)}", "warning")
        yield from _cause_lines(explanation)
        yield Line(f"Next: tflq inspect {quote(model)} --op {explanation.index}", "strong")
    if unknown:
        yield Line(f"note: {len(unknown)} entries of {dump} name no tensor: {', '.join(unknown[:5])}", "warning")
    shown = [o for o in found if o.differs or o.reason]
    if shown:
        columns = (("#", ">"), ("operator", "<"), ("differing", ">"), ("not compared because", "<"))
        yield from table(columns, ([str(o.index), o.op, _counts(o), o.reason] for o in shown))


def verdict_of(found: Sequence[Located]) -> str:
    """same, differs, or incomplete where nothing differs but something was not compared."""
    if any(o.differs for o in found):
        return "differs"
    return "incomplete" if any(o.reason for o in found) else "same"


def _counts(o: Located) -> str:
    parts = o.differences.values()
    return f"{sum(d.differing for d in parts):,} of {sum(d.elements for d in parts):,}" if parts else ""


def _cause_lines(e: Explanation) -> Iterator[Line]:
    if e.verdict == "same":
        return
    if e.verdict == "undetermined":
        yield Line("Cause: undetermined; no hypothesis reproduces every bit", "warning")
    elif e.verdict == "explained":
        yield Line("Cause (the only hypothesis that reproduces every bit):", "strong")
    else:
        yield Line(
            f"Cause: {len(e.exact)} hypotheses reproduce every bit; this input does not tell them apart", "strong"
        )
    for h in e.exact:
        yield Line(f"  {h.kind}: {h.name} ({h.matching:,} of {h.elements:,})")
    partial = [h for h in e.hypotheses if not h.exact and h.matching > e.matching][:_PARTIAL]
    if not e.exact and partial:
        yield Line(f"  best partial ones ({e.profile} itself: {e.matching:,} of {e.elements:,}):")
        for h in partial:
            yield Line(f"  {h.kind}: {h.name} ({h.matching:,} of {h.elements:,})", "faint")


def explain_document(
    model: str, dump: str, found: Sequence[Located], explanation: Explanation | None, unknown: Sequence[str]
) -> dict[str, Any]:  # fmt: skip
    """The same as a document."""
    return {
        "schema": "tflq/explain/1",
        "model": model,
        "dump": dump,
        "verdict": verdict_of(found),
        "first_divergent": next((o.index for o in found if o.differs), None),
        "unknown": list(unknown),
        "operators": [
            {
                "index": o.index, "op": o.op, "reason": o.reason, "assumed": list(o.assumed),
                "tensors": [{"index": t, **asdict(d)} for t, d in o.differences.items()],
            }
            for o in found
        ],
        "explanation": None
        if explanation is None
        else {
            "index": explanation.index, "profile": explanation.profile, "verdict": explanation.verdict,
            "places": list(explanation.places),
            "matching": explanation.matching, "elements": explanation.elements,
            "exact": [asdict(h) for h in explanation.exact],
            "partial": [asdict(h) for h in explanation.hypotheses if not h.exact][:_PARTIAL],
        },
    }  # fmt: skip


def fit_lines(ops: Sequence[str], matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> Iterator[Line]:
    """The best profile, the operators it does not explain, then every profile's score."""
    best = best_of(matrix)
    if not any(map(_compared, matrix.values())):
        yield Line("Nothing could be compared: the dump holds no operator's inputs and results", "warning")
        return
    left = _unexplained(matrix[best])
    whole = "every operator compared" if not left else f"all but {_listed(ops, matrix[best])}"
    yield Line(f"Best: {best} explains {whole}", "good" if not left else "warning")
    equal = [name for name in matrix if name != best and _exact(matrix[name]) == _exact(matrix[best])]
    if equal:
        yield Line(f"As good on this dump: {', '.join(equal)}")
    columns = (("profile", "<"), ("exact", ">"), ("compared", ">"), ("operators that differ", "<"))
    rows = ([name, str(_exact(row)), str(_compared(row)), _listed(ops, row)] for name, row in matrix.items())
    yield from table(columns, rows)


def fit_document(ops: Sequence[str], matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> dict[str, Any]:
    """The same as a document."""
    best = best_of(matrix)
    return {
        "schema": "tflq/fit/1",
        "best": best,
        "unexplained": _unexplained(matrix[best]),
        "operators": list(ops),
        "matrix": {name: [None if c is None else list(c) for c in row] for name, row in matrix.items()},
    }


def best_of(matrix: Mapping[str, tuple[tuple[int, int] | None, ...]]) -> str:
    """The profile with most exact operators; the first of equals."""
    return max(matrix, key=lambda name: _exact(matrix[name]))


def _exact(row: Sequence[tuple[int, int] | None]) -> int:
    return sum(cell is not None and cell[0] == cell[1] for cell in row)


def _compared(row: Sequence[tuple[int, int] | None]) -> int:
    return sum(cell is not None for cell in row)


def _listed(ops: Sequence[str], row: Sequence[tuple[int, int] | None]) -> str:
    return ", ".join(f"{i} {ops[i]}" for i in _unexplained(row))


def _unexplained(row: Sequence[tuple[int, int] | None]) -> list[int]:
    return [i for i, cell in enumerate(row) if cell is not None and cell[0] != cell[1]]
