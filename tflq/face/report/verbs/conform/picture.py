"""The picture of a target on a page: operators by types of their first operand, operators without failures folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.devices.conformance.judging import Judged, Result, Verdicts
from tflq.face.report.blocks import Block, Fold, Inline, Section, Styled, Table, Text
from tflq.face.report.numbers import counted

#: Cases of one operator by the type of the first operand.
_Cells = dict[str, list[Judged]]


def picture(verdicts: Verdicts) -> Section:
    """Return operators that fail against types, those with most failures first, then refused ones, then the others."""
    operators: dict[str, _Cells] = {}
    for judged in verdicts.cases:
        operators.setdefault(judged.case.op, {}).setdefault(_first_type(judged), []).append(judged)
    passing = sorted(op for op, cells in operators.items() if all(map(_pass, cells.values())))
    left = sorted((op for op in operators if op not in passing), key=lambda op: (-_failures(operators[op]), op))
    failing = [op for op in left if _failures(operators[op])]
    refused = [op for op in left if op not in failing]
    return Section("picture", "Operators by types", list(_blocks(operators, failing, refused, passing)))


def _blocks(
    operators: dict[str, _Cells], failing: Sequence[str], refused: Sequence[str], passing: Sequence[str]
) -> Iterator[Block]:
    if failing:
        note = Text("failing of all cases, by the type of the first operand; ✓ where all pass", "faint")
        summary = f"{counted(len(failing), 'operator')} with other results"
        yield Fold(summary, [_table(operators, failing), note], opened=True)
    if refused:
        summary = f"{counted(len(refused), 'operator')} refused for some types, the same bits for the others"
        yield Fold(summary, [_table(operators, refused)])
    if passing:
        cases = sum(len(cell) for op in passing for cell in operators[op].values())
        verb = "passes" if len(passing) == 1 else "pass"
        summary = f"{counted(len(passing), 'operator')} {verb} in all of {counted(cases, 'case')}"
        yield Fold(summary, [Text(", ".join(passing), "good")])


def _table(operators: dict[str, _Cells], names: Sequence[str]) -> Table:
    types = sorted({type_ for op in names for type_ in operators[op]})
    rows = [[op, *(_cell(operators[op].get(type_, ())) for type_ in types)] for op in names]
    return Table([("operator", "="), *((type_, ">") for type_ in types)], rows)


def _first_type(judged: Judged) -> str:
    return judged.case.types.replace("->", " ").split()[0] if judged.case.types.strip("-> ") else "none"


def _pass(cases: Sequence[Judged]) -> bool:
    return all(judged.result == Result.PASSES for judged in cases)


def _failures(cells: _Cells) -> int:
    return sum(judged.fails for cases in cells.values() for judged in cases)


def _cell(cases: Sequence[Judged]) -> Inline:
    """Return the failing cases of all, or what else there is."""
    if not cases:
        return ""
    fails = sum(judged.fails for judged in cases)
    if fails:
        return Styled(f"{fails:,} of {len(cases):,}", "bad")
    if _pass(cases):
        return Styled(f"✓ {len(cases):,}", "good")
    refused = sum(judged.result == Result.REFUSED for judged in cases)
    return Styled(f"{refused:,} refused", "soft")
