"""`tflq fit` as a page: every profile against every operator of a dump."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from markupsafe import Markup

from tflq.diagnosis.profile_fit import Fit
from tflq.report.blocks import Bar
from tflq.report.fit.lines import fit_lines, mix_texts
from tflq.report.graph.colouring import Colouring, scale, states
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html import parts
from tflq.report.html.page import page

Cell = tuple[int, int] | None
Matrix = Mapping[str, tuple[Cell, ...]]

#: Operators that the matrix has columns for.
_MOST_COLUMNS = 80
#: Profiles that are shown.
_MOST_PROFILES = 40


def fit_page(view: ModelView, path: str, dump: str, fit: Fit) -> str:
    """Return the page of a fit; it shows the best profiles only."""
    matrix = _shown(fit)
    first = next(iter(fit_lines(fit)))
    left = fit.unexplained
    command = f"tflq explain {quote(path)} --dump {quote(dump)} --profile {quote(fit.best)}"
    start = left[0] if left else None
    return page(
        "fit",
        first.text,
        _profiles(fit, matrix),
        parts.listing([] if fit.fitting else list(mix_texts(fit))),
        parts.next_section([command] if left else []),
        graph_section(view, fit_colourings(fit), lambda index: _panel(index, matrix), start),
        _matrix(fit.operators, matrix),
        title=f"{path}: tflq fit",
        tone=first.style,
        facts=[parts.together("model", parts.code(path)), parts.together("dump", parts.code(dump))],
    )


def _profiles(fit: Fit, matrix: Matrix) -> Markup:
    """Operators that each profile explains, the best first."""
    compared = len(fit.compared)
    rows = []
    for name, row in matrix.items():
        count = sum(map(_explains, row))
        rows.append(Bar(name, count, f"{count} of {compared}", "good" if name in fit.ties else "plain"))
    caption = Markup("{}explains most").format(parts.key("good"))
    unit = "operators of which every element is reproduced"
    bars = parts.bars("profile", unit, rows, full=compared)
    return parts.section("profiles", "Profiles", parts.figure(bars, caption))


def _shown(fit: Fit) -> Matrix:
    return {name: fit.matrix[name] for name in fit.ranked[:_MOST_PROFILES]}


def fit_colourings(fit: Fit) -> list[Colouring]:
    """Operators by whether the best profile explains them, by how many profiles do, and by each other profile."""
    matrix, best = _shown(fit), fit.best
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
    if cell is None:
        return "unknown", "not compared"
    return ("good", "every element") if cell[0] == cell[1] else ("bad", "some elements differ")


def _panel(index: int, matrix: Matrix) -> Markup:
    rows = [
        [name, "not compared" if cell is None else f"{cell[1] - cell[0]:,} of {cell[1]:,}"]
        for name, row in matrix.items()
        if (cell := row[index]) is None or cell[0] != cell[1]
    ]
    same = [name for name, row in matrix.items() if _explains(row[index])]
    return parts.together(
        parts.note(f"reproduced by {len(same)} of {len(matrix)} profiles", "good" if same else "bad"),
        parts.paragraph(", ".join(same)),
        parts.details("where elements differ", parts.table((("profile", "<"), ("elements that differ", ">")), rows))
        if rows
        else "",
    )


def _matrix(ops: Sequence[str], matrix: Matrix) -> Markup:
    """Return a table of profiles by operators, limited to operators that some profile does not reproduce."""
    apart = [i for i in range(len(ops)) if len({_explains(row[i]) for row in matrix.values()}) > 1][:_MOST_COLUMNS]
    if not apart:
        return Markup("")
    columns = [("profile", "<"), *((f"{i} {ops[i]}", ">") for i in apart)]
    table = parts.table(columns, ([name, *map(_cell, (row[i] for i in apart))] for name, row in matrix.items()))
    said = "elements that differ, in operators on which profiles disagree; ✓ where none does"
    return parts.section("matrix", "Where profiles disagree", parts.figure(table, said))


def _cell(cell: Cell) -> Markup:
    if cell is None:
        return Markup('<span class="soft">not compared</span>')
    differing = cell[1] - cell[0]
    if differing:
        return Markup('<span class="bad">{}</span>').format(f"{differing:,}")
    return Markup('<span class="good" aria-label="none">✓</span>')
