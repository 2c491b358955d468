"""The page of a fit: every profile against every operator of a dump."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tflq.diagnosis.profile_fit import Fit
from tflq.face.report import pictures
from tflq.face.report.blocks import Badge, Bar, Bars, Block, Graph, Inline, Next, Section, Styled, Table, Text
from tflq.face.report.graph.colouring import Colouring, scale, states
from tflq.face.report.matrix import merge
from tflq.face.report.pictures import Mark
from tflq.face.report.verbs.explain.texts import command

Cell = tuple[int, int] | None
Matrix = Mapping[str, tuple[Cell, ...]]

#: Marks by style.
_MARKS = {"good": Mark("=", "good"), "bad": Mark("x", "bad"), "unknown": Mark("-", "unknown")}
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


def fit_matrix(fit: Fit) -> pictures.Matrix:
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
    yield Table((("profile", "<"), ("elements that differ", ">")), rows, fold="where elements differ")


def _matrix(ops: Sequence[str], matrix: Matrix) -> Iterator[Section]:
    """Yield a table of profiles by operators, limited to operators that some profile does not reproduce."""
    apart = [i for i in range(len(ops)) if len({_explains(row[i]) for row in matrix.values()}) > 1][:_MOST_COLUMNS]
    if not apart:
        return
    columns = [("profile", "<"), *((f"{i} {ops[i]}", ">") for i in apart)]
    rows: list[list[Inline]] = [[name, *(_cell(row[i]) for i in apart)] for name, row in matrix.items()]
    caption = Text("elements that differ, in operators on which profiles disagree; ✓ where none does")
    yield Section("matrix", "Where profiles disagree", [Table(columns, rows), caption])


def _cell(cell: Cell) -> Styled:
    if cell is None:
        return Styled("not compared", "soft")
    if not cell[1]:
        return Styled("never written", "soft")
    differing = cell[1] - cell[0]
    return Styled(f"{differing:,}", "bad") if differing else Styled("✓", "good")
