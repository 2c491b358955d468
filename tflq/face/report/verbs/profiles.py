"""The reports of `tflq profiles`: the list, two profiles, profiles on a model, releases on a model.

Profiles, alone, in pairs and on a model as a document: `schemas/profiles.schema.json`.

The reports of the profiles themselves: the list, and how two of them differ.

The reports of profiles on a model: which operators can give other bits, and which releases agree on all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote

from tflq.comparison.inspection.profile_effects import Agreements, Effects, OperatorEffects, ReleaseAgreement
from tflq.comparison.inspection.profile_pairs import PairDifference, ProfileComparison
from tflq.engine.profiles import Profile
from tflq.engine.profiles.history import RELEASES
from tflq.face.report.blocks import (
    Badge,
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Graph,
    Headline,
    InText,
    Next,
    OnPage,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.proof import (
    EffectDocument,
    ListDocument,
    ProfileDocument,
    ProfilesComparisonDocument,
    ReleasesAgreementDocument,
)
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.matrices import MatrixBlock, MatrixMark, merge
from tflq.face.report.wording import counted, listed


def list_document(profiles: Sequence[Profile]) -> ListDocument:
    """Return the known profiles as a document."""
    known = [filled(ProfileDocument, profile.source, name=profile.name) for profile in profiles]
    return filled(ListDocument, None, profiles=known)


def pair_document(found: ProfileComparison) -> ProfilesComparisonDocument:
    """Return where two profiles differ as a document."""
    return filled(ProfilesComparisonDocument, found, compared=(found.first, found.second))


def effects_document(effects: Effects) -> EffectDocument:
    """Return what profiles do to a model as a document, operators that none of them touches included."""
    return filled(EffectDocument, effects)


def agreements_document(found: Agreements) -> ReleasesAgreementDocument:
    """Return which releases agree on a model as a document."""
    return filled(ReleasesAgreementDocument, found)


#: Operands beyond which the middle of a list of types is left out.
_SHOWN_OPERANDS = 5
#: Rows that text lists, and types of a row.
_ROWS, _TYPES = 80, 4
_LIST_COLUMNS = (("profile", "<"), ("package", "<"), ("version", "<"), ("resolver", "<"), ("CPU", "<"))


def list_report(profiles: Sequence[Profile]) -> Report:
    """Build the report of the known profiles."""
    rows = [(p.name, p.source.package, p.source.version, p.source.resolver, p.source.cpu) for p in profiles]
    text = Text("Each also as NAME+single-rounding: every fixed-point rounding made once.", "faint")
    section = Section("list", "Profiles", [TableBlock(_LIST_COLUMNS, rows), text])
    return Report("profiles", [section], headline=counted(len(profiles), "profile"))


def pair_report(found: ProfileComparison) -> Report:
    """Build the report of two profiles: the operators and types whose arithmetic differs, and in what."""
    return Report("profiles", list(_pair_blocks(found)), about=f"{found.first} and {found.second}")


def _pair_blocks(found: ProfileComparison) -> Iterator[Block]:
    yield _report_verdict(found)
    yield _report_brief(found)
    columns = [("operator", "<"), ("types", "="), ("differs in", "<"), (found.first, "<"), (found.second, "<")]
    rest = "... and {left} more (--json has all)"
    table = TableBlock(columns, list(map(_row, found.differences)), most=_ROWS, rest=rest)
    yield Section("pair", "Where they differ", [table])
    notes = dict.fromkeys(note for difference in found.differences for note in difference.notes)
    yield Section("notes", "Notes", [Text(note, "faint") for note in notes])


def _report_verdict(found: ProfileComparison) -> Headline:
    ops = dict.fromkeys(difference.op for difference in found.differences)
    subject = f"{found.first} and {found.second}"
    if not ops:
        return Headline("no difference", "good", subject=subject)
    text = f"{counted(len(ops), 'operator')} can give other bits: {', '.join(ops)}"
    headline = f"{subject} differ in {counted(len(ops), 'operator')}"
    return Headline(text, subject=subject, headline=headline)


def _report_brief(found: ProfileComparison) -> Brief:
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


#: Profiles that a card names, and of which text lists every constant that differs.
_ON_CARD, _FEW = 8, 3
_SAME = MatrixMark("=", "good")
#: Marks of the matrix by the style of an operator's state, and their meaning.
_MARKS = {
    "good": _SAME,
    "hot2": MatrixMark("c", "hot2"),
    "hot4": MatrixMark("K", "hot4"),
    "unknown": MatrixMark("-", "unknown"),
}
_MEANINGS = (("hot2", "same code, other constants"), ("hot4", "other code"), ("unknown", "refused by one"))


def effects_report(effects: Effects, *, all_profiles: bool = True) -> Report:
    """Build the report: which profiles part from the base at which operators, and in which constant.

    Unless `all_profiles` is True, text names the first profiles of those that compute the same.
    """
    path = effects.model.path or "model"
    return Report(
        "profiles", list(_blocks(effects, all_profiles)), about=CodeBlock(path), title=f"{path}: tflq profiles"
    )


def _blocks(effects: Effects, all_profiles: bool) -> Iterator[Block]:
    touched = [operator for operator in effects.operators if operator.effects]
    yield _verdict(effects, len(touched))
    yield _brief(effects, touched)
    if touched:
        yield _matrix(effects)
    against = f"{effects.base} against {counted(len(effects.profiles), 'profile')}"
    yield OnPage(lambda _view: [FactLine(against), _profiles(effects), _graph(effects, touched)])
    if touched and (all_profiles or len(effects.profiles) <= _FEW):
        yield InText(list(_table(effects, touched, len(effects.profiles))))
    elif touched:
        yield InText([Text("--all names every profile, and the constant that differs", "faint")])
    yield from (Text(text, "good" if touched else "faint") for text in _proved_texts(effects))
    if any(operator.proved for operator in effects.operators):
        yield Next([f"tflq prove {quote(effects.model.path or 'MODEL')} --all"])


def _verdict(effects: Effects, touched: int) -> Headline:
    count, path = len(effects.operators), effects.model.path or "model"
    if effects.refused:
        first = effects.refused[0]
        many = counted(len(effects.refused), "operator")
        text = f"{effects.base} refuses {many} of {count}, first {first.place} {first.op}: {first.refused}"
        return Headline(text, "bad", subject=path)
    if touched:
        text = f"{touched} of {count} operators can give other bits than under {effects.base}"
        return Headline(text, subject=path)
    always = " for every input" if any(operator.proved for operator in effects.operators) else ""
    return Headline(f"the same bits{always} under {effects.base}, {', '.join(effects.profiles)}", "good", subject=path)


def _brief(effects: Effects, touched: Sequence[OperatorEffects]) -> Brief:
    where = f"{counted(len(effects.operators), 'operator')} under {', '.join(effects.profiles[:_ON_CARD])}"
    if touched:
        first, effect = touched[0], touched[0].effects[0]
        where = f"First: operator {first.place} {first.op} under {effect.profile}: {effect.field}"
    return Brief(where, "Next: .operators[i].effects")


def _matrix(effects: Effects) -> MatrixBlock:
    """Return all profiles against all operators. Marks show what differs from the base."""
    marks = {effects.base: [_SAME] * len(effects.operators)}
    for name in effects.profiles:
        states_of = (_state(operator, name) for operator in effects.operators)
        marks[name] = [_MARKS[style] for style, _ in states_of]
    operators = [(operator.place, operator.op) for operator in effects.operators]
    meanings = ((_SAME, f"the same bits as {effects.base}"), *((_MARKS[style], text) for style, text in _MEANINGS))
    return merge(f"Profiles with the same differences from {effects.base}", marks, operators, meanings)


def _proved_texts(effects: Effects) -> Iterator[str]:
    for operator in effects.operators:
        if operator.proved:
            under = ", ".join(operator.proved)
            yield f"same bits for every input, proved: {operator.place} {operator.op} under {under}"


def _table(effects: Effects, touched: Sequence[OperatorEffects], most: int) -> Iterator[Block]:
    """Yield the profiles that part nowhere, then a row for operators that the same profiles compute alike."""
    same = [name for name in effects.profiles if not any(e.profile == name for o in touched for e in o.effects)]
    if same:
        yield Text(f"the same bits as {effects.base}: {listed(same, most)}", "good")
    columns = [
        ("#", "<"),
        ("operator", "<"),
        ("types", "="),
        ("profile", "<"),
        ("differs in", "<"),
        (effects.base, "<"),
        ("there", "<"),
    ]
    yield TableBlock(columns, list(_effect_rows(touched, most)))


def _profiles(effects: Effects) -> Section:
    """Return how many operators each profile computes otherwise than the base."""
    counts = {
        name: sum(any(e.profile == name for e in o.effects) for o in effects.operators) for name in effects.profiles
    }
    rows = [
        Bar(name, count, f"{count} of {len(effects.operators)}" if count else "the same bits", "above")
        for name, count in sorted(counts.items(), key=lambda item: item[1])
    ]
    unit = f"operators that can give other bits than under {effects.base}"
    return Section("profiles", "Profiles", [Bars("profile", unit, rows, full=len(effects.operators))])


def _graph(effects: Effects, touched: Sequence[OperatorEffects]) -> Graph:
    drawn = min((operator.subgraph for operator in effects.operators), default=0)
    panels = {o.index: _panel(effects, o) for o in effects.operators if o.subgraph == drawn}
    focus = next((o.index for o in touched if o.subgraph == drawn), None)
    return Graph(effects_colourings(effects), panels, focus)


def _panel(effects: Effects, operator: OperatorEffects) -> list[Block]:
    if not operator.effects:
        return [Text(Badge("the same bits under every profile", "good"))]
    apart = {effect.profile for effect in operator.effects}
    text = f"{len(apart)} of {counted(len(effects.profiles), 'profile')} can give other bits"
    alike: dict[tuple[str, str, str], list[str]] = {}
    for effect in operator.effects:
        alike.setdefault((effect.field, effect.base, effect.here), []).append(effect.profile)
    blocks: list[Block] = [Text(Badge(text, "bad"))]
    for (field, base, there), names in alike.items():
        blocks.append(Text(f"{field}: {base} under {effects.base}, {there} under" if base else f"{field}, {there}, by"))
        blocks.append(Text(", ".join(names), "faint"))
    return blocks


def effects_colourings(effects: Effects) -> list[Colouring]:
    """Return colourings of operators by the number of profiles that part, and by what each such profile changes."""
    drawn = min((operator.subgraph for operator in effects.operators), default=0)  # a page draws one subgraph
    operators = [operator for operator in effects.operators if operator.subgraph == drawn]
    numbers = {o.index: float(len({e.profile for e in o.effects})) for o in operators}
    texts = {index: f"{n:.0f} of {len(effects.profiles)} profiles" if n else "the same" for index, n in numbers.items()}
    parting = [name for name in effects.profiles if any(e.profile == name for o in operators for e in o.effects)]
    return [
        scale("profiles that disagree", numbers, "profiles", texts=texts),
        *(states(f"under {name}", {o.index: _state(o, name) for o in operators}) for name in parting),
    ]


def _state(operator: OperatorEffects, profile: str) -> tuple[str, str]:
    fields = [effect.field for effect in operator.effects if effect.profile == profile]
    if not fields:
        return "good", "the same bits"
    if "refused" in fields:
        return "unknown", "refused by one"
    style, meaning = _MEANINGS[1] if "kernel" in fields else _MEANINGS[0]
    return style, meaning


def _effect_rows(operators: Sequence[OperatorEffects], most: int) -> Iterator[tuple[str, ...]]:
    """Yield one row for all operators of a type that the same profiles compute alike; one line for each difference."""
    alike: dict[tuple[object, ...], list[str]] = {}
    for operator in operators:
        groups: dict[tuple[str, str, str], list[str]] = {}
        for effect in operator.effects:
            groups.setdefault((effect.field, *_in_short(effect.base, effect.here)), []).append(effect.profile)
        columns = ["\n".join(column) for column in zip(*groups, strict=True)]
        profiles = "\n".join(listed(names, most) for names in groups.values())
        row: tuple[object, ...] = (operator.op, short_types(operator.types), profiles, *columns)
        alike.setdefault(row, []).append(operator.place)
    for row, indices in alike.items():
        yield (", ".join(indices), *map(str, row))


def _in_short(base: str, there: str) -> tuple[str, str]:
    """Return two values of one constant in short: names of different stages, "other values" for arrays."""
    array, digest, _ = base.partition(" #")
    if digest and there.startswith(f"{array} #"):
        return array, "other values"
    first, second = base.split(" ")[0], there.split(" ")[0]
    return (first, second) if first != second and first.isidentifier() and second.isidentifier() else (base, there)


_AGREEMENT_COLUMNS = (("resolver", "<"), ("the same bits under", "<"), ("other than the newest at", "<"))


def agreements_report(found: Agreements) -> Report:
    """Build the report of the releases that agree on every operator of a model."""
    verdict = Headline(f"releases since {found.since}, by resolver", subject=found.model.path or "model")
    rows = [_agreement_row(found, agreement) for agreement in found.agreements]
    return Report("profiles", [verdict, TableBlock(_AGREEMENT_COLUMNS, rows)])


def agreements_card(found: Agreements) -> Report:
    """Build the report of agreeing releases for a console or a notebook."""
    first = found.agreements[0] if found.agreements else None
    where = "no release" if first is None else f"{first.resolver}: {', '.join(_spans(first.releases))}"
    return replace(report := agreements_report(found), blocks=[*report.blocks, Brief(where, "Next: .agreements")])


def _agreement_row(found: Agreements, agreement: ReleaseAgreement) -> tuple[str, str, str]:
    """Return the resolver, the releases, and the operators for which the newest can give other bits, by type."""
    by_type: dict[str, list[str]] = {}
    for index in agreement.apart:
        by_type.setdefault(found.operators[index], []).append(found.places[index])
    apart = "\n".join(f"{op} {', '.join(indices)}" for op, indices in by_type.items())
    return agreement.resolver, "\n".join(_spans(agreement.releases)), apart


def _spans(releases: Sequence[str]) -> Iterator[str]:
    """Yield neighbouring releases of one package as `first to last`."""
    spans: list[list[str]] = []
    for release in releases:
        before = spans[-1][-1] if spans else ""
        follows = before and RELEASES.index(before) + 1 == RELEASES.index(release)
        if follows and before.partition("-")[0] == release.partition("-")[0]:
            spans[-1].append(release)
        else:
            spans.append([release])
    return (span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in spans)
