"""The reports of the profiles themselves: the list, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.comparison.inspection.profile_pairs import PairDifference, ProfileComparison
from tflq.engine.profiles import Profile
from tflq.face.report.blocks import Block, Brief, Report, Section, Table, Text, Verdict
from tflq.face.report.numbers import counted

#: Operands beyond which the middle of a list of types is left out.
_SHOWN_OPERANDS = 5
#: Rows that text lists, and types of a row.
_ROWS, _TYPES = 80, 4
_LIST_COLUMNS = (("profile", "<"), ("package", "<"), ("version", "<"), ("resolver", "<"), ("CPU", "<"))


def list_report(profiles: Sequence[Profile]) -> Report:
    """Build the report of the known profiles."""
    rows = [(p.name, p.source.package, p.source.version, p.source.resolver, p.source.cpu) for p in profiles]
    text = Text("Each also as NAME+single-rounding: every fixed-point rounding made once.", "faint")
    section = Section("list", "Profiles", [Table(_LIST_COLUMNS, rows), text])
    return Report("profiles", [section], headline=counted(len(profiles), "profile"))


def pair_report(found: ProfileComparison) -> Report:
    """Build the report of two profiles: the operators and types whose arithmetic differs, and in what."""
    return Report("profiles", list(_pair_blocks(found)), about=f"{found.first} and {found.second}")


def _pair_blocks(found: ProfileComparison) -> Iterator[Block]:
    yield _verdict(found)
    yield _brief(found)
    columns = [("operator", "<"), ("types", "="), ("differs in", "<"), (found.first, "<"), (found.second, "<")]
    rest = "... and {left} more (--json has all)"
    table = Table(columns, list(map(_row, found.differences)), most=_ROWS, rest=rest)
    yield Section("pair", "Where they differ", [table])
    notes = dict.fromkeys(note for difference in found.differences for note in difference.notes)
    yield Section("notes", "Notes", [Text(note, "faint") for note in notes])


def _verdict(found: ProfileComparison) -> Verdict:
    ops = dict.fromkeys(difference.op for difference in found.differences)
    subject = f"{found.first} and {found.second}"
    if not ops:
        return Verdict("no difference", "good", subject=subject)
    text = f"{counted(len(ops), 'operator')} can give other bits: {', '.join(ops)}"
    headline = f"{subject} differ in {counted(len(ops), 'operator')}"
    return Verdict(text, subject=subject, headline=headline)


def _brief(found: ProfileComparison) -> Brief:
    if not found.differences:
        return Brief("the same kernels and arithmetic for every operator", "Next: nothing to do")
    op, types, field, first, second = (cell.split("\n")[0] for cell in _row(found.differences[0]))
    where = f"First: {op} ({types}), {field}: {first} against {second}"
    return Brief(where, "Next: .differences, each with .op, .types, .primitives and .notes")


def _row(d: PairDifference) -> tuple[str, str, str, str, str]:
    """Return the operator, its operand types, what differs, and its value under each of the two."""
    every = list(dict.fromkeys(map(short_types, d.types)))
    left = len(every) - _TYPES
    types = "\n".join([*every[:_TYPES], f"and {left:,} more"] if left > 1 else every)
    names, first, second = zip(*((p.name, p.first, p.second) for p in d.primitives), strict=True)
    return d.op, types, "\n".join(names), "\n".join(first), "\n".join(second)


def short_types(types: str) -> str:
    """Return operand types; the middle of many is left out."""
    left, _, right = types.partition(" -> ")
    words = left.split()
    return types if len(words) <= _SHOWN_OPERANDS else f"{' '.join(words[:2])} ... -> {right}"
