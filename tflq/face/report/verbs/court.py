"""The report of `tflq court`: groups of systems with equal outputs, and the operators at which they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

from tflq.comparison.court import Hearing, Parting, SystemGroup
from tflq.comparison.goldens.manifest import InputsDocument
from tflq.comparison.inspection.difference import Difference
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Graph,
    Headline,
    InText,
    OnPage,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.court import CourtDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.graph.colouring import states
from tflq.face.report.wording import counted, listed
from tflq.texts import shown

_STYLES = {"same": "good", "differs": "bad", "nothing compared": "bad"}
_GROUPS = (("group", "<"), ("systems", ">"), ("leaves at", "<"), ("outputs differ", "<"), ("who", "<"))
_PARTINGS = (("operator", "<"), ("parts", "<"), ("by", "<"), ("by the formula", "<"))
_FAILED = (("did not run", "<"), ("reason", "<"))
#: Rows of a table in text, systems that a line names, and characters of a row and of a ruling.
_LISTED, _NAMED, _WIDE, _NARROW = 20, 4, 100, 24


def court_report(found: Hearing) -> Report:
    """Build the report: the verdict, groups, partings by operator, and systems that did not run."""
    name = found.model.path or "the model"
    return Report("court", list(_blocks(found, name)), about=CodeBlock(name), title=f"{name}: tflq court")


def _blocks(found: Hearing, name: str) -> Iterator[Block]:
    text = f"{counted(found.systems, 'system')}, {counted(len(found.groups), 'group')} of equal outputs"
    text += f"; {counted(found.samples, 'sample')}, inputs {shown(found.inputs.source)}"
    yield Headline(text, _STYLES[found.verdict], found.verdict.upper(), shown(name))
    yield from (FactLine(fact, style) for fact, style in _facts(found))
    first = found.groups[1] if len(found.groups) > 1 else None
    where = "all systems give the same bits" if first is None else f"{_names(first.systems)}: {_where(first)}"
    yield Brief(where, "Next: .groups, .partings")
    bars = [Bar(_letter(k), len(g.systems), f"{len(g.systems):,}") for k, g in enumerate(found.groups)]
    whole = [_group_row(k, group, len(group.systems)) for k, group in enumerate(found.groups)]
    room = _WIDE - sum(max(len(row[k]) for row in (*whole, [name for name, _ in _GROUPS])) + 2 for k in range(4))
    brief = [_group_row(k, group, _fitting(group.systems, room)) for k, group in enumerate(found.groups)]
    yield InText([TableBlock(_GROUPS, brief, most=_LISTED, rest="and {left} more groups (--json has all)")])
    yield OnPage(
        lambda view: [
            Section("groups", "Groups of equal outputs", [Bars("group", "systems", bars), TableBlock(_GROUPS, whole)]),
            _graph(found, len(view.inspection.operators)),
        ]
    )
    if found.partings:
        rows = [_parting_row(parting) for parting in found.partings]
        table = TableBlock(_PARTINGS, rows, most=_LISTED, rest="and {left} more (--json has all)")
        yield Section("partings", "Where systems with the same inputs part", [table])
    if found.failed:
        failed = [(shown(name), shown(reason)) for name, reason in found.failed.items()]
        table = TableBlock(_FAILED, failed, most=_LISTED, rest="and {left} more (--json has all)")
        yield Section("failed", "Systems that did not run", [table])
    counted_in = "; elements are those of the first sample that differs" if found.samples > 1 else ""
    compared = f"Groups are compared with {shown(found.reference)}{counted_in}"
    yield Text(f"{compared}; the number of systems decides nothing.", "faint")


def _facts(found: Hearing) -> Iterator[tuple[str, str]]:
    """Yield what to know before reading the groups."""
    for name in found.apart_from_profile:
        profile = name.removeprefix("runtime:")
        yield (
            f"{name} is not in the group of the profile {profile}: tflq verify --against {profile} shows why",
            "warning",
        )
    if found.alone:
        names = _names(found.alone)
        verb = "gives" if len(found.alone) == 1 else "give, each for itself,"
        yield f"{names} {verb} outputs that no other system gives", ""
    if found.loose and len(found.groups) > 1:
        yield (
            f"{counted(len(found.loose), 'profile')} promise less than every bit of the outputs (--json names them)",
            "",
        )


def _letter(number: int) -> str:
    """Return the name of a group: A to Z, then numbers."""
    return chr(ord("A") + number) if number < 26 else f"{number + 1}"


def _group_row(number: int, group: SystemGroup, most: int) -> tuple[str, ...]:
    where = ("-", "the reference") if group.has_reference else (_where(group), _said(group.difference))
    return _letter(number), f"{len(group.systems):,}", *where, _names(group.systems, most)


def _where(group: SystemGroup) -> str:
    return "not seen at an operator" if group.leaves is None else f"{group.leaves.index} {group.leaves.op}"


def _names(systems: Sequence[str], most: int = _NAMED) -> str:
    return listed(list(map(shown, systems)), most)


def _fitting(systems: Sequence[str], room: int) -> int:
    """Return the largest number of names that fit `room` characters, with the number of the others; at least one."""
    return next((k for k in range(len(systems), 1, -1) if len(_names(systems, k)) <= room), 1)


def _parting_row(parting: Parting) -> tuple[str, ...]:
    sizes = (shown(part[0]) + f" +{len(part) - 1}" * (len(part) > 1) for part in parting.parts)
    ruling = "no formula" if parting.ruling is None else shown(parting.ruling.reason)
    distances = (_said(found).replace(", by up to ", " by ") for found in parting.differences)
    return f"{parting.index} {shown(parting.op)}", "\n".join(sizes), "\n".join(distances), fill(ruling, _NARROW)


def _said(found: Difference | None) -> str:
    if found is None:
        return "-"
    return (
        found.problem or f"{found.differing:,} of {found.elements:,}, by up to {found.largest:,} {found.unit}".rstrip()
    )


def _graph(found: Hearing, operators: int) -> Graph:
    """Return the picture of the model, with the parts of each operator in its panel."""

    def panel(index: int) -> Iterator[Block]:
        for parting in (one for one in found.partings if one.index == index):
            pairs = zip(parting.parts, parting.differences, strict=True)
            rows = [(_names(part, len(part)), "-" if k == 0 else _said(d)) for k, (part, d) in enumerate(pairs)]
            yield TableBlock((("systems with the same outputs", "<"), ("differ from the first", "<")), rows)

    return Graph([states("systems part", _states(found, operators))], panel, _focus(found))


def _states(found: Hearing, operators: int) -> dict[int, tuple[str, str]]:
    """Return the state of each operator of the picture: whether systems part there."""
    parted = {parting.index for parting in found.partings}
    return {k: ("bad", "they part") if k in parted else ("good", "the same") for k in range(operators)}


def _focus(found: Hearing) -> int | None:
    return found.partings[0].index if found.partings else None


def court_document(found: Hearing) -> CourtDocument:
    """Return the document: `schemas/court.schema.json`."""
    failed = [{"system": name, "reason": reason} for name, reason in found.failed.items()]
    return filled(
        CourtDocument, found, inputs=filled(InputsDocument, found.inputs, samples=found.samples), failed=failed
    )
