"""The profiles that a whole dump fits in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tflq.diagnosis.compatibility import Compatible, compatible
from tflq.diagnosis.discrimination import Discrimination
from tflq.diagnosis.profile_fit import Column, Fit, FitVerdict, exact_operators
from tflq.profiles import by_name
from tflq.report.explain.lines import discrimination_texts
from tflq.report.layout import Line, table

#: Names, and rows of the table, that are shown.
_NAMES, _ROWS = 8, 12

_STYLES = {
    FitVerdict.FITS: "good",
    FitVerdict.MIX: "warning",
    FitVerdict.PARTLY: "warning",
    FitVerdict.NONE: "bad",
    FitVerdict.NOTHING: "warning",
}


def fit_lines(found: Fit, told: Discrimination | None = None) -> Iterator[Line]:
    """The verdict, what else fits as well, which runtimes that are, a mix where no profile fits, and every score."""
    yield Line(verdict_text(found), _STYLES[found.verdict])
    yield from map(Line, failure_texts(found))
    if found.verdict == FitVerdict.NOTHING:
        return
    others = found.fitting[1:] if found.fitting else found.ties[1:] if found.verdict != FitVerdict.NONE else ()
    if others:
        yield Line(f"As good on this dump: {_listed(others)}")
    for one in compatible(map(by_name, found.fitting)):
        yield Line(f"  compatible with {runtime_text(one)}")
    if not found.fitting:
        yield from map(Line, mix_texts(found))
    if told is not None:
        yield from (Line(f"  {text}") for text in discrimination_texts(told))
    columns = (("profile", "<"), ("exact", ">"), ("compared", ">"), ("operators that differ", "<"))
    yield from table(columns, (_row(found, name) for name in found.ranked[:_ROWS]))
    if len(found.ranked) > _ROWS:
        yield Line(f"... and {len(found.ranked) - _ROWS} more (--json has them all)", "faint")


def verdict_text(found: Fit) -> str:
    """What the dump is, in one line."""
    best = found.matrix[found.best]
    return {
        FitVerdict.NOTHING: "Nothing could be compared: "
        + ("no profile runs an operator" if found.failures else "the dump holds no operator's inputs and results"),
        FitVerdict.FITS: f"Best: {found.fitting[0] if found.fitting else found.best} explains every operator compared",
        FitVerdict.MIX: f"No single profile fits, a mix does. Best alone: {found.best} explains {_left(found, best)}",
        FitVerdict.PARTLY: f"None fits. Best: {found.best} explains {_left(found, best)}",
        FitVerdict.NONE: "None fits: no profile reproduces any of the operators compared",
    }[found.verdict]


def mix_texts(found: Fit) -> Iterator[str]:
    """Which types of operators are as under which profiles, and which are as under none."""
    for name, ops in found.parts.items():
        yield f"  as {name}: {', '.join(ops)}"
    nowhere = [op for op, names in found.mix.items() if not names]
    if nowhere:
        yield f"  as no profile: {', '.join(nowhere)} (tflq explain looks for the mistake)"


def failure_texts(found: Fit) -> Iterator[str]:
    """Why operators run under no profile."""
    for index, reason in islice(found.failures.items(), _NAMES):
        yield f"  not run: operator {index} {found.operators[index]}: {reason}"
    if len(found.failures) > _NAMES:
        yield f"  ... and {len(found.failures) - _NAMES} more (--json has them all)"


def runtime_text(one: Compatible) -> str:
    """Package, versions, resolver and processors."""
    versions = one.versions[0] if len(one.versions) == 1 else f"{one.versions[0]} to {one.versions[-1]}"
    held = f" (held: {', '.join(one.versions)})" if len(one.versions) > 2 else ""
    return f"{one.package} {versions}{held}, {one.resolver}, {' or '.join(one.cpus)}"


def _row(found: Fit, name: str) -> list[str]:
    column = found.matrix[name]
    compared = sum(cell is not None for cell in column)
    return [name, str(len(exact_operators(column))), str(compared), _operators(found, _differing(column))]


def _left(found: Fit, column: Column) -> str:
    return f"all but {_operators(found, _differing(column))}"


def _differing(column: Column) -> list[int]:
    return [i for i, cell in enumerate(column) if cell is not None and cell[0] != cell[1]]


def _operators(found: Fit, indices: Iterable[int]) -> str:
    return ", ".join(f"{i} {found.operators[i]}" for i in indices)


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
