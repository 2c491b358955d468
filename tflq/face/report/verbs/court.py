"""The report of `tflq court`: groups of systems with equal outputs, and the operators at which they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.comparison.inspection.difference import Difference
from tflq.comparison.verification.hearing import Group, Hearing, Parting
from tflq.escaping import shown
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    Code,
    Fact,
    Graph,
    InText,
    OnPage,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.documents.court import CourtDocument
from tflq.face.report.documents.shared import brief_difference_document, facts_document, fields_of
from tflq.face.report.graph.colouring import states
from tflq.face.report.numbers import counted

_STYLES = {"same": "good", "differs": "bad", "nothing compared": "bad"}
_GROUPS = (("group", "<"), ("systems", ">"), ("leaves at", "<"), ("outputs differ", "<"), ("who", "<"))
_PARTINGS = (("operator", "<"), ("parts", "<"), ("by", "<"), ("by the formula", "<"))
_FAILED = (("did not run", "<"), ("reason", "<"))
#: Rows of a table in text, and systems of a group that a row of text names.
_LISTED, _NAMED = 20, 4


def court_report(found: Hearing) -> Report:
    """Build the report: the verdict, groups, partings by operator, and systems that did not run."""
    name = found.model.path or "the model"
    return Report("court", list(_blocks(found, name)), about=Code(name), title=f"{name}: tflq court")


def _blocks(found: Hearing, name: str) -> Iterator[Block]:
    text = f"{counted(found.systems, 'system')}, {counted(len(found.groups), 'group')} of equal outputs"
    text += f"; {counted(found.samples, 'sample')}, inputs {shown(found.inputs.source)}"
    yield Verdict(text, _STYLES[found.verdict], found.verdict.upper(), shown(name))
    yield from (Fact(fact, style) for fact, style in _facts(found))
    first = found.groups[1] if len(found.groups) > 1 else None
    where = "all systems give the same bits" if first is None else f"{_names(first.systems)}: {_where(first)}"
    yield Brief(where, "Next: .groups, .partings")
    bars = [Bar(_letter(k), len(g.systems), f"{len(g.systems):,}") for k, g in enumerate(found.groups)]
    whole = [_group_row(k, group, len(group.systems)) for k, group in enumerate(found.groups)]
    brief = [_group_row(k, group, _NAMED) for k, group in enumerate(found.groups)]
    yield InText([Table(_GROUPS, brief, most=_LISTED, rest="and {left} more groups (--json has all)")])
    yield OnPage(
        lambda view: [
            Section("groups", "Groups of equal outputs", [Bars("group", "systems", bars), Table(_GROUPS, whole)]),
            _graph(found, len(view.inspection.operators)),
        ]
    )
    if found.partings:
        rows = [_parting_row(parting) for parting in found.partings]
        table = Table(_PARTINGS, rows, most=_LISTED, rest="and {left} more (--json has all)")
        yield Section("partings", "Where systems with the same inputs part", [table])
    if found.failed:
        failed = [(shown(name), shown(reason)) for name, reason in found.failed.items()]
        table = Table(_FAILED, failed, most=_LISTED, rest="and {left} more (--json has all)")
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


def _group_row(number: int, group: Group, most: int) -> tuple[str, ...]:
    where = ("-", "the reference") if group.has_reference else (_where(group), _said(group.difference))
    return _letter(number), f"{len(group.systems):,}", *where, _names(group.systems, most)


def _where(group: Group) -> str:
    return "not seen at an operator" if group.leaves is None else f"{group.leaves.index} {group.leaves.op}"


def _names(systems: Sequence[str], most: int = _NAMED) -> str:
    rest = f" and {len(systems) - most:,} more" if len(systems) > most else ""
    return ", ".join(map(shown, systems[:most])) + rest


def _parting_row(parting: Parting) -> tuple[str, ...]:
    sizes = " | ".join(f"{_names(part, 2)}" for part in parting.parts)
    ruling = "no formula" if parting.ruling is None else shown(parting.ruling.reason)
    return f"{parting.index} {shown(parting.op)}", sizes, " | ".join(map(_said, parting.differences[1:])), ruling


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
            yield Table((("systems with the same outputs", "<"), ("differ from the first", "<")), rows)

    return Graph([states("systems part", _states(found, operators))], panel, _focus(found))


def _states(found: Hearing, operators: int) -> dict[int, tuple[str, str]]:
    """Return the state of each operator of the picture: whether systems part there."""
    parted = {parting.index for parting in found.partings}
    return {k: ("bad", "they part") if k in parted else ("good", "the same") for k in range(operators)}


def _focus(found: Hearing) -> int | None:
    return found.partings[0].index if found.partings else None


def court_document(found: Hearing) -> CourtDocument:
    """Return the document: `schemas/court.schema.json`."""
    return {
        "schema": "tflq/court/1",
        "verdict": found.verdict,
        "model": facts_document(found.model),
        "inputs": {"source": found.inputs.source, "seed": found.inputs.seed, "samples": found.samples},
        "reference": found.reference,
        "groups": [
            {
                "systems": list(group.systems),
                "has_reference": group.has_reference,
                "leaves": None if group.leaves is None else {"operator": group.leaves.index, "op": group.leaves.op},
                "difference": brief_difference_document(group.difference),
            }
            for group in found.groups
        ],
        "partings": [
            {
                "operator": parting.index,
                "op": parting.op,
                "parts": [list(part) for part in parting.parts],
                "differences": [brief_difference_document(one) for one in parting.differences],
                "ruling": None if parting.ruling is None else fields_of(parting.ruling),
            }
            for parting in found.partings
        ],
        "alone": list(found.alone),
        "apart_from_profile": list(found.apart_from_profile),
        "loose": list(found.loose),
        "failed": [{"system": name, "reason": reason} for name, reason in found.failed.items()],
    }
