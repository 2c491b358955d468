"""`tflq profiles` as a page: the list, two side by side, or what profiles do to the operators of a model."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tflq.inspection.profile_effects import Effects, OperatorEffects
from tflq.inspection.profile_pairs import PairDifference
from tflq.profiles import Profile
from tflq.report.blocks import Bar
from tflq.report.graph.colouring import Colouring, scale, states
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html import parts
from tflq.report.html.page import page
from tflq.report.numbers import counted
from tflq.report.profiles.lines import LIST_COLUMNS, pair_row, profile_row

#: Lines of a cell that are not folded away.
_TYPES = 5


def list_page(profiles: Sequence[Profile]) -> str:
    """The page of the profiles there are."""
    table = parts.table(LIST_COLUMNS, map(profile_row, profiles))
    said = "Each also as NAME+single-rounding: every fixed-point rounding made once."
    return page("profiles", counted(len(profiles), "profile"), parts.section("list", "Profiles", table), facts=[said])


def pair_page(first: str, second: str, differences: Sequence[PairDifference]) -> str:
    """The page of how two profiles differ."""
    columns = (("operator", "<"), ("types", "<"), ("differs in", "<"), (first, "<"), (second, "<"))
    ops = {d.op for d in differences}
    headline = f"{first} and {second} differ in {counted(len(ops), 'operator')}" if ops else "no difference"
    notes = dict.fromkeys(note for d in differences for note in d.notes)
    table = parts.table(columns, ([_lines(cell) for cell in pair_row(d)] for d in differences))
    return page(
        "profiles",
        headline,
        parts.section("pair", "Where they differ", table if differences else ""),
        parts.section("notes", "Notes", parts.listing(notes)),
        facts=[f"{first} and {second}"],
    )


def _lines(cell: str) -> Markup:
    lines = [parts.text(line) for line in cell.split("\n")]
    shown = Markup("<br>").join(lines[:_TYPES])
    rest = Markup("<br>").join(lines[_TYPES:])
    return parts.together(shown, parts.details(f"and {len(lines) - _TYPES} more", rest) if rest else "")


def effects_page(view: ModelView, effects: Effects) -> str:
    """The page of what other profiles do to a model's operators."""
    touched = [operator for operator in effects.operators if operator.effects]
    path = effects.model.path or "model"
    count = counted(len(effects.operators), "operator")
    by_index = {operator.index: operator for operator in effects.operators}
    return page(
        "profiles",
        f"{len(touched)} of {count} can give other bits than under {effects.base}",
        _profiles(effects),
        graph_section(
            view,
            effects_colourings(effects),
            lambda index: _panel(effects, by_index[index]) if index in by_index else Markup(""),
            touched[0].index if touched else None,
        ),
        title=f"{path}: tflq profiles",
        facts=[parts.code(path), f"{effects.base} against {counted(len(effects.profiles), 'profile')}"],
    )


def _profiles(effects: Effects) -> Markup:
    """Operators at which each profile parts from the base."""
    counts = {
        name: sum(any(e.profile == name for e in o.effects) for o in effects.operators) for name in effects.profiles
    }
    rows = [
        Bar(name, count, f"{count} of {len(effects.operators)}" if count else "the same bits", "above")
        for name, count in sorted(counts.items(), key=lambda item: item[1])
    ]
    unit = f"operators that can give other bits than under {effects.base}"
    return parts.section("profiles", "Profiles", parts.bars("profile", unit, rows, full=len(effects.operators)))


def effects_colourings(effects: Effects) -> list[Colouring]:
    """Operators by how many profiles can give other bits, and by what each such profile does."""
    numbers = {o.index: float(len({e.profile for e in o.effects})) for o in effects.operators}
    texts = {index: f"{n:.0f} of {len(effects.profiles)} profiles" if n else "the same" for index, n in numbers.items()}
    parting = [
        name for name in effects.profiles if any(e.profile == name for o in effects.operators for e in o.effects)
    ]
    return [
        scale("profiles that disagree", numbers, "profiles", texts=texts),
        *(states(f"under {name}", {o.index: _state(o, name) for o in effects.operators}) for name in parting),
    ]


def _state(operator: OperatorEffects, profile: str) -> tuple[str, str]:
    fields = [effect.field for effect in operator.effects if effect.profile == profile]
    if not fields:
        return "good", "the same bits"
    if "refused" in fields:
        return "unknown", "refused by one"
    return ("hot4", "another kernel") if "kernel" in fields else ("hot2", "other constants")


def _panel(effects: Effects, operator: OperatorEffects) -> Markup:
    columns = (("profile", "<"), ("differs in", "<"), (effects.base, "<"), ("there", "<"))
    rows = [(e.profile, e.field, e.base, e.here) for e in operator.effects]
    if not rows:
        return parts.note("the same bits under every profile", "good")
    apart = {effect.profile for effect in operator.effects}
    said = f"{len(apart)} of {counted(len(effects.profiles), 'profile')} can give other bits"
    return parts.together(parts.note(said, "bad"), parts.table(columns, rows))
