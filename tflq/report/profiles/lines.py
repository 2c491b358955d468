"""Profiles, alone, in pairs and on a model in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflq.inspection.profile_effects import Effects, OperatorEffects
from tflq.inspection.profile_pairs import PairDifference
from tflq.inspection.releases import Agreement, Agreements
from tflq.profiles import Profile
from tflq.profiles.history import RELEASES
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

#: Operand types beyond this many are left out of tables.
SHOWN_OPERANDS = 5
#: Profiles that are named where not all are asked for.
NAMES = 6


LIST_COLUMNS = (("profile", "<"), ("package", "<"), ("version", "<"), ("resolver", "<"), ("CPU", "<"))


def list_lines(profiles: Sequence[Profile]) -> Iterator[Line]:
    """One line a profile."""
    yield from table(LIST_COLUMNS, map(profile_row, profiles))
    yield Line("Each also as NAME+single-rounding: every fixed-point rounding made once.", "faint")


def profile_row(p: Profile) -> tuple[str, ...]:
    """Name, package, version, resolver, CPU."""
    return p.name, p.source.package, p.source.version, p.source.resolver, p.source.cpu


def pair_lines(first: str, second: str, differences: Sequence[PairDifference]) -> Iterator[Line]:
    """How many operators and which, a table of types and what differs, then what other kernels say of themselves."""
    if not differences:
        yield Line(pair_verdict(first, second, differences), "good")
        return
    yield Line(pair_verdict(first, second, differences), "strong")
    columns = [("operator", "<"), ("types", "="), ("differs in", "<"), (first, "<"), (second, "<")]
    yield from table(columns, [pair_row(d) for d in differences])
    notes = dict.fromkeys(note for d in differences for note in d.notes)
    for note in notes:
        yield Line(note, "faint")


def pair_verdict(first: str, second: str, differences: Sequence[PairDifference]) -> str:
    """How many operators can give other bits, and which."""
    names = dict.fromkeys(d.op for d in differences)
    if not names:
        return f"{first} and {second}: no difference"
    return f"{first} and {second}: {counted(len(names), 'operator')} can give other bits: {', '.join(names)}"


def pair_row(d: PairDifference) -> tuple[str, str, str, str, str]:
    """Operator, operand types, what differs, and how it is under each of the two."""
    types = "\n".join(dict.fromkeys(map(_short, d.types)))
    names, first, second = zip(*((p.name, p.first, p.second) for p in d.primitives), strict=True)
    return d.op, types, "\n".join(names), "\n".join(first), "\n".join(second)


def _short(types: str) -> str:
    """Operand types; the middle of many is left out."""
    left, _, right = types.partition(" -> ")
    words = left.split()
    return types if len(words) <= SHOWN_OPERANDS else f"{' '.join(words[:2])} ... -> {right}"


def effects_lines(effects: Effects, *, all_profiles: bool = True) -> Iterator[Line]:
    """Which profiles part from the base at which operator, alike operators with their first constant that differs.

    Unless `all_profiles` are asked for, the first NAMES of those that compute the same are named.
    """
    touched = [operator for operator in effects.operators if operator.effects]
    proved = [
        f"{operator.index} {operator.op} under {', '.join(operator.proved)}"
        for operator in effects.operators
        if operator.proved
    ]
    yield effects_verdict(effects)
    if not touched:
        yield from (Line(f"same bits for every input, proved: {text}", "faint") for text in proved)
        return
    columns = [
        ("#", "<"),
        ("operator", "<"),
        ("types", "="),
        ("profile", "<"),
        ("differs in", "<"),
        (effects.base, "<"),
        ("there", "<"),
    ]
    same = [name for name in effects.profiles if not any(e.profile == name for o in touched for e in o.effects)]
    if same:
        yield Line(f"the same bits as {effects.base}: {_listed(same, len(same) if all_profiles else NAMES)}", "good")
    most = len(effects.profiles) if all_profiles else NAMES
    yield from table(columns, _effect_rows(touched, most))
    if most < max(len(operator.effects) for operator in touched):
        yield Line("--all names every profile", "faint")
    yield from (Line(f"same bits for every input, proved: {text}", "good") for text in proved)


def effects_verdict(effects: Effects) -> Line:
    """How many operators can give other bits than under the base."""
    touched = sum(bool(operator.effects) for operator in effects.operators)
    count, path = len(effects.operators), effects.model.path or "model"
    if touched:
        return Line(f"{path}: {touched} of {count} operators can give other bits than under {effects.base}", "strong")
    always = " for every input" if any(operator.proved for operator in effects.operators) else ""
    return Line(f"{path}: the same bits{always} under {effects.base}, {', '.join(effects.profiles)}", "good")


def _listed(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _effect_rows(operators: Sequence[OperatorEffects], most: int) -> Iterator[tuple[str, ...]]:
    """One row for all operators of a kind that the same profiles compute otherwise, one line for all such profiles."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for operator in operators:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for effect in operator.effects:
            groups.setdefault((effect.field, *_brief(effect.base, effect.here)), []).append(effect.profile)
        columns = ["\n".join(column) for column in zip(*groups, strict=True)]
        profiles = "\n".join(_listed(names, most) for names in groups.values())
        row: tuple[object, ...] = (operator.op, _short(operator.types), profiles, *columns)
        alike.setdefault(row, []).append(operator.index)
    for row, indices in alike.items():
        yield (", ".join(map(str, indices)), *map(str, row))


def _brief(base: str, there: str) -> tuple[str, str]:
    """Two values of one constant: of different stages only the names, of arrays what they are."""
    array, digest, _ = base.partition(" #")
    if digest and there.startswith(f"{array} #"):
        return array, "other values"
    first, second = base.split(" ")[0], there.split(" ")[0]
    return (first, second) if first != second and first.isidentifier() and second.isidentifier() else (base, there)


AGREEMENT_COLUMNS = (("resolver", "<"), ("the same bits under", "<"), ("other than the newest at", "<"))


def agreement_lines(found: Agreements) -> Iterator[Line]:
    """One line for releases that agree on every operator."""
    yield Line(f"{found.model.path or 'model'}: releases since {found.since}, by resolver", "strong")
    yield from table(AGREEMENT_COLUMNS, (agreement_row(found, agreement) for agreement in found.agreements))


def agreement_row(found: Agreements, agreement: Agreement) -> tuple[str, str, str]:
    """Resolver, releases, and the operators for which the newest release can give other bits, by type."""
    by_type: dict[str, list[str]] = {}
    for index in agreement.apart:
        by_type.setdefault(found.operators[index], []).append(str(index))
    apart = "\n".join(f"{op} {', '.join(indices)}" for op, indices in by_type.items())
    return agreement.resolver, "\n".join(_spans(agreement.releases)), apart


def _spans(releases: Sequence[str]) -> Iterator[str]:
    """Neighbouring releases of one package as `first to last`."""
    spans: list[list[str]] = []
    for release in releases:
        before = spans[-1][-1] if spans else ""
        follows = before and RELEASES.index(before) + 1 == RELEASES.index(release)
        if follows and before.partition("-")[0] == release.partition("-")[0]:
            spans[-1].append(release)
        else:
            spans.append([release])
    return (span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)
