"""The report of `tflq fit`: every profile against every operator of a dump; the best one or a mix, others as good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from tflq.diagnosis.profile_fit import Column, Fit, FitVerdict
from tflq.diagnosis.runtimes import RUNTIMES, Compatible, compatible
from tflq.engine.profiles import by_name
from tflq.face.report import matrices
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
    Inline,
    InText,
    Listing,
    Next,
    OnPage,
    Report,
    Section,
    Styled,
    TableBlock,
    Text,
)
from tflq.face.report.documents.diagnosis import ComparedDocument, FitDocument
from tflq.face.report.documents.filling import filled
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.matrices import MatrixMark, merge
from tflq.face.report.verbs.explain import command, discrimination_document, discrimination_texts
from tflq.face.report.wording import counted, listed


def fit_document(fit: Fit) -> FitDocument:
    """Return the fit as a document. `best` is null if no profile explains any operator, or if none can be named."""
    none = not fit.names_best
    return filled(
        FitDocument,
        fit,
        best=None if none else fit.best,
        compared=filled(ComparedDocument, fit, operators=len(fit.compared), of=len(fit.operators)),
        ties=[] if none else list(fit.ties),
        compatible=compatible(map(by_name, fit.fitting)),
        parts=[{"profile": name, "operators": list(ops)} for name, ops in fit.parts.items()],
        unexplained=list(fit.compared if none else fit.unexplained),
        failures={str(index): reason for index, reason in fit.failures.items()},
        discrimination=None if fit.discrimination is None else discrimination_document(fit.discrimination),
    )


Cell = tuple[int, int] | None
Matrix = Mapping[str, tuple[Cell, ...]]

#: Marks by style.
_MARKS = {"good": MatrixMark("=", "good"), "bad": MatrixMark("x", "bad"), "unknown": MatrixMark("-", "unknown")}
#: Most columns of the matrix.
_MOST_COLUMNS = 80
#: Most profiles that a page shows.
_MOST_PROFILES = 40


def page_blocks(fit: Fit, model: str, dump: str, options: Sequence[str]) -> Iterator[Block]:
    """Yield the best profiles, the operators left unexplained, the model, and where profiles disagree."""
    matrix, left = _show(fit), fit.unexplained
    yield _profiles(fit, matrix)
    again = command("explain", model, "--dump", dump, *options, "--profile", fit.best)
    yield Next([again] if left else [])
    panels = {index: list(_panel(index, matrix)) for index in range(len(fit.operators))}
    yield Graph(fit_colourings(fit), panels, left[0] if left else None)
    yield from _matrix(fit.operators, matrix)


def fit_matrix(fit: Fit) -> matrices.MatrixBlock:
    """Return all profiles against the operators that were compared, the best rows first."""
    compared = fit.compared
    marks = {name: [_MARKS[_state(fit.matrix[name][index])[0]] for index in compared] for name in fit.ranked}
    key = ((_MARKS["good"], "every element"), (_MARKS["bad"], "some differ"), (_MARKS["unknown"], "not compared"))
    return merge(
        "Profiles that reproduce the same operators", marks, [(str(i), fit.operators[i]) for i in compared], key
    )


def _profiles(fit: Fit, matrix: Matrix) -> Section:
    """Return how many operators each profile explains, the best first."""
    compared = len(fit.compared)
    rows = []
    for name, row in matrix.items():
        count = sum(map(_explains, row))
        rows.append(Bar(name, count, f"{count} of {compared}", "good" if name in fit.ties else "plain"))
    unit = "operators of which every element is reproduced"
    return Section("profiles", "Profiles", [Bars("profile", unit, rows, compared, key=("good", "explains most"))])


def _show(fit: Fit) -> Matrix:
    return {name: fit.matrix[name] for name in fit.ranked[:_MOST_PROFILES]}


def fit_colourings(fit: Fit) -> list[Colouring]:
    """Return colourings of operators by the best profile, by the number of profiles that fit, and by each other one."""
    matrix, best = _show(fit), fit.best
    count = len(matrix[best])
    agreeing = {
        index: sum(_explains(row[index]) for row in matrix.values())
        for index in range(count)
        if any(row[index] is not None for row in matrix.values())
    }
    disagree = {index: float(len(matrix) - n) for index, n in agreeing.items()}
    texts = {index: f"{n} of {len(matrix)} profiles fit" for index, n in agreeing.items()}
    return [
        states(f"explained by {best}", {index: _state(matrix[best][index]) for index in range(count)}),
        scale("profiles that do not reproduce it", disagree, "profiles", texts=texts),
        *(
            states(f"explained by {name}", {index: _state(row[index]) for index in range(count)})
            for name, row in matrix.items()
            if name != best
        ),
    ]


def _explains(cell: Cell) -> bool:
    return cell is not None and cell[0] == cell[1]


def _state(cell: Cell) -> tuple[str, str]:
    if cell is None or not cell[1]:
        return "unknown", "not compared" if cell is None else "never written"
    return ("good", "every element") if cell[0] == cell[1] else ("bad", "some elements differ")


def _panel(index: int, matrix: Matrix) -> Iterator[Block]:
    rows = [
        [name, "not compared" if cell is None else f"{cell[1] - cell[0]:,} of {cell[1]:,}"]
        for name, row in matrix.items()
        if (cell := row[index]) is None or cell[0] != cell[1]
    ]
    same = [name for name, row in matrix.items() if _explains(row[index])]
    yield Text(Badge(f"reproduced by {len(same)} of {len(matrix)} profiles", "good" if same else "bad"))
    yield Text(", ".join(same))
    yield TableBlock((("profile", "<"), ("elements that differ", ">")), rows, fold="where elements differ")


def _matrix(ops: Sequence[str], matrix: Matrix) -> Iterator[Section]:
    """Yield a table of profiles by operators, limited to operators that some profile does not reproduce."""
    apart = [i for i in range(len(ops)) if len({_explains(row[i]) for row in matrix.values()}) > 1][:_MOST_COLUMNS]
    if not apart:
        return
    columns = [("profile", "<"), *((f"{i} {ops[i]}", ">") for i in apart)]
    rows: list[list[Inline]] = [[name, *(_cell(row[i]) for i in apart)] for name, row in matrix.items()]
    caption = Text("elements that differ, in operators on which profiles disagree; ✓ where none does")
    yield Section("matrix", "Where profiles disagree", [TableBlock(columns, rows), caption])


def _cell(cell: Cell) -> Styled:
    if cell is None:
        return Styled("not compared", "soft")
    if not cell[1]:
        return Styled("never written", "soft")
    differing = cell[1] - cell[0]
    return Styled(f"{differing:,}", "bad") if differing else Styled("✓", "good")


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
    about = ("model ", CodeBlock(model), ", dump ", CodeBlock(dump))
    blocks = [_brief(fit), *_blocks(fit, model, dump, options)]
    return Report("fit", blocks, about=about, title=f"{model}: tflq fit")


def _blocks(fit: Fit, model: str, dump: str, options: Sequence[str]) -> Iterator[Block]:
    yield Headline(_verdict_text(fit), _STYLES[fit.verdict])
    if any("--inputs" in reason for reason in fit.failures.values()):
        yield InText([Text("Next: give what the device was fed with --inputs SOURCE", "strong")])
    yield Listing(list(_failure_texts(fit)))
    if fit.verdict != FitVerdict.NOTHING:
        yield FactLine(("  ", _compared_text(fit)))
        yield fit_matrix(fit)
        yield from _report_profiles(fit)
        if not fit.fitting:
            yield Listing(list(_mix_texts(fit)))
        if fit.discrimination is not None:
            yield Listing(list(discrimination_texts(fit.discrimination)))
    yield OnPage(lambda _view: page_blocks(fit, model, dump, options))


def _report_profiles(fit: Fit) -> Iterator[Block]:
    """Yield the other profiles that fit as well, and their runtimes."""
    if fit.foreign and fit.verdict != FitVerdict.UNTOLD:
        yield Text(f"As good for the operators looked at: {_foreign(fit)}", "warning")
    others = fit.fitting[1:] if fit.fitting else fit.ties[1:] if fit.verdict != FitVerdict.NONE else ()
    if fit.verdict == FitVerdict.UNTOLD:
        yield Text(f"these profiles: {listed(fit.fitting, _NAMES)}", indent=1)
    elif others:
        yield Text(f"As good on this dump: {listed(others, _NAMES)}")
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
