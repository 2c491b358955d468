"""The report of how profiles fit a dump: the best one or a mix, others that fit as well, the scores of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tflq.diagnosis.compatibility import Compatible, compatible
from tflq.diagnosis.foreign import RUNTIMES
from tflq.diagnosis.profile_fit import Column, Fit, FitVerdict
from tflq.engine.profiles import by_name
from tflq.face.report.blocks import Block, Brief, Code, Fact, InText, Listing, OnPage, Report, Text, Verdict
from tflq.face.report.numbers import counted
from tflq.face.report.verbs.explain.texts import discrimination_texts
from tflq.face.report.verbs.fit.figures import fit_matrix, page_blocks

#: Names, and rows of the table, that are shown.
_NAMES, _ROWS = 8, 12

_STYLES = {
    FitVerdict.FITS: "good",
    FitVerdict.UNTOLD: "warning",
    FitVerdict.MIX: "warning",
    FitVerdict.PARTLY: "warning",
    FitVerdict.NONE: "bad",
    FitVerdict.NOTHING: "warning",
}


def fit_report(fit: Fit, *, model: str = "MODEL", dump: str = "DUMP", options: Sequence[str] = ()) -> Report:
    """Build the report of how profiles fit the dump at `dump`; `options` are words of the command that read it."""
    about = ("model ", Code(model), ", dump ", Code(dump))
    blocks = [_brief(fit), *_blocks(fit, model, dump, options)]
    return Report("fit", blocks, about=about, title=f"{model}: tflq fit")


def _blocks(fit: Fit, model: str, dump: str, options: Sequence[str]) -> Iterator[Block]:
    yield Verdict(_verdict_text(fit), _STYLES[fit.verdict])
    if any("--inputs" in reason for reason in fit.failures.values()):
        yield InText([Text("Next: give what the device was fed with --inputs SOURCE", "strong")])
    yield Listing(list(_failure_texts(fit)))
    if fit.verdict != FitVerdict.NOTHING:
        yield Fact(("  ", _compared_text(fit)))
        yield fit_matrix(fit)
        yield from _profiles(fit)
        if not fit.fitting:
            yield Listing(list(_mix_texts(fit)))
        if fit.discrimination is not None:
            yield Listing(list(discrimination_texts(fit.discrimination)))
    yield OnPage(lambda _view: page_blocks(fit, model, dump, options))


def _profiles(fit: Fit) -> Iterator[Block]:
    """Yield the other profiles that fit as well, and their runtimes."""
    if fit.foreign and fit.verdict != FitVerdict.UNTOLD:
        yield Text(f"As good for the operators looked at: {_foreign(fit)}", "warning")
    others = fit.fitting[1:] if fit.fitting else fit.ties[1:] if fit.verdict != FitVerdict.NONE else ()
    if fit.verdict == FitVerdict.UNTOLD:
        yield Text(f"these profiles: {_list(fit.fitting)}", indent=1)
    elif others:
        yield Text(f"As good on this dump: {_list(others)}")
    if fit.verdict == FitVerdict.FITS:
        runtimes = compatible(map(by_name, fit.fitting))
        yield Listing([f"compatible with {_runtime_text(one)}" for one in runtimes])


def _brief(fit: Fit) -> Brief:
    mix = "; ".join(f"as {name}: {', '.join(ops)}" for name, ops in fit.parts.items())
    how_many = f"{len(fit.fitting)} of {len(fit.matrix)} profiles fit the {len(fit.compared)} operators compared"
    then = "Next: .fitting, .mix, .matrix; tflq.explain(model, dump, profile) where none fits"
    return Brief(how_many if fit.fitting or not mix else mix, then)


def _verdict_text(fit: Fit) -> str:
    """Return the verdict in one line, with what was compared."""
    best = fit.matrix[fit.best]
    k, n = len(fit.compared), len(fit.operators)
    where = "every operator" if k == n else f"the {counted(k, 'operator')} compared of {n}"
    return {
        FitVerdict.NOTHING: "Nothing could be compared: "
        + ("no operator could be run" if fit.failures else "the dump holds no operator's inputs and results"),
        FitVerdict.FITS: f"Best: {fit.fitting[0] if fit.fitting else fit.best} explains {where}",
        FitVerdict.UNTOLD: f"Cannot tell: {counted(len(fit.fitting), 'profile')} give these bits, "
        + (f"but {_too_small(fit)}" if fit.is_too_small else f"and so do {_foreign(fit)}"),
        FitVerdict.MIX: f"No single profile fits, a mix does. Best alone: {fit.best} explains {_left(fit, best)}",
        FitVerdict.PARTLY: f"None fits. Best: {fit.best} explains {_left(fit, best)}",
        FitVerdict.NONE: "None fits: no profile reproduces any of the operators compared",
    }[fit.verdict]


def _too_small(fit: Fit) -> str:
    """Return how much was compared, and how much is needed."""
    results = f"{counted(fit.informative, 'result')} inside {'its' if fit.informative == 1 else 'their'} type's range"
    return f"only {results} {'was' if fit.informative == 1 else 'were'} compared, and {fit.needed} are needed"


def _foreign(fit: Fit) -> str:
    return "; ".join(f"{RUNTIMES[name]} ({name})" for name in fit.foreign)


def _compared_text(fit: Fit) -> str:
    """Return how many operators and elements were compared, and on how many of them profiles differ."""
    text = f"compared: {len(fit.compared)} of {counted(len(fit.operators), 'operator')}, "
    text += f"{counted(fit.elements, 'element')}, "
    return text + (f"{fit.telling:,} of them distinguish profiles" if fit.telling else "none distinguishes profiles")


def _mix_texts(fit: Fit) -> Iterator[str]:
    """Yield the operator types that each profile of the mix reproduces, then those that no profile does."""
    for name, ops in fit.parts.items():
        yield f"as {name}: {', '.join(ops)}"
    nowhere = [op for op, names in fit.mix.items() if not names]
    if nowhere:
        yield f"as no profile: {', '.join(nowhere)} (tflq explain looks for the mistake)"


def _failure_texts(fit: Fit) -> Iterator[str]:
    """Yield the operators that no profile could run, with the reason."""
    for index, reason in islice(fit.failures.items(), _NAMES):
        yield f"not run: operator {index} {fit.operators[index]}: {reason}"
    if len(fit.failures) > _NAMES:
        yield f"... and {len(fit.failures) - _NAMES} more (--json has them all)"


def _runtime_text(one: Compatible) -> str:
    """Return the package, its versions, the resolver and the processors."""
    versions = one.versions[0] if len(one.versions) == 1 else f"{one.versions[0]} to {one.versions[-1]}"
    checked = f" (checked: {', '.join(one.versions)})" if len(one.versions) > 2 else ""
    return f"{one.package} {versions}{checked}, {one.resolver}, {' or '.join(one.cpus)}"


def _left(fit: Fit, column: Column) -> str:
    return f"all but {_operators(fit, _differing(column))}"


def _differing(column: Column) -> list[int]:
    return [i for i, cell in enumerate(column) if cell is not None and cell[0] != cell[1]]


def _operators(fit: Fit, indices: Iterable[int]) -> str:
    return ", ".join(f"{i} {fit.operators[i]}" for i in indices)


def _list(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")
