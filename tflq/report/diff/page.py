"""`tflq diff` as a page: the first model as a graph, with what differs at each operator."""

from __future__ import annotations

from collections import Counter

from markupsafe import Markup

from tflq.inspection.model_diff import Change, ModelDiff
from tflq.report.blocks import Bar
from tflq.report.diff.lines import change_row, diff_lines
from tflq.report.graph.colouring import Colouring, scale, states
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html.page import page
from tflq.report.html.parts import bars, code, details, section, table, together
from tflq.report.numbers import counted


def diff_page(view: ModelView, model_diff: ModelDiff) -> str:
    """The page of a comparison of two files; `view` is of the first."""
    names = model_diff.first.path or "first", model_diff.second.path or "second"
    columns = (("operator", "<"), ("differs in", "<"), (names[0], "<"), (names[1], "<"))
    by_operator = _by_operator(model_diff)
    model = [change for change in model_diff.changes if not change.op]
    added = [change for change in model_diff.changes if change.op and change.first is None]
    kinds = Counter(_kind(change) for change in model_diff.changes)
    headline = next(iter(diff_lines(model_diff)))

    def panel(index: int) -> Markup:
        rows = [change_row(change)[1:] for change in by_operator.get(index, ())]
        sides = (("differs in", "<"), ("first", "<"), ("second", "<"))
        return table(sides, rows) if rows else Markup("")

    return page(
        "diff",
        headline.text.removeprefix(f"{names[0]} and {names[1]}: "),
        section("model", "What the models take and give", table(columns, map(change_row, model)) if model else ""),
        section(
            "kinds",
            "What differs",
            bars("what", "differences", [Bar(kind, count, f"{count:,}") for kind, count in kinds.most_common()]),
        ),
        graph_section(view, diff_colourings(view, model_diff), panel, min(by_operator, default=None)),
        section("added", f"Only in {names[1]}", table(columns, map(change_row, added)) if added else ""),
        section(
            "changes",
            "All differences",
            details(
                counted(len(model_diff.changes), "difference"), table(columns, map(change_row, model_diff.changes))
            ),
        )
        if model_diff.changes
        else "",
        title=f"{names[0]} and {names[1]}: tflq diff",
        tone=headline.style,
        facts=[together(code(names[0]), "and", code(names[1]))],
    )


def _kind(change: Change) -> str:
    """What differs, without the number of the operand: "input scale", "derived multiplier"."""
    words = change.what.split(" ")
    if words[0] == "derived":
        return "constants derived for the kernel"
    if words[0].startswith("options."):
        return "options"
    return " ".join(word for word in words if not word.isdigit())


def _by_operator(model_diff: ModelDiff) -> dict[int, list[Change]]:
    changes: dict[int, list[Change]] = {}
    for change in model_diff.changes:
        if change.first is not None:
            changes.setdefault(change.first, []).append(change)
    return changes


def diff_colourings(view: ModelView, model_diff: ModelDiff) -> list[Colouring]:
    """Operators of the first model by how much differs in them, and by what it is."""
    changes = _by_operator(model_diff)
    count = len(view.inspection.operators)
    numbers = {index: float(len(changes.get(index, ()))) for index in range(count)}
    gone = {index for index, those in changes.items() if any(change.second is None for change in those)}
    texts = {index: counted(int(n), "difference") if n else "the same" for index, n in numbers.items()}
    return [
        scale("differences", numbers, "", texts=texts),
        states("what differs", {index: _state(changes.get(index, []), gone=index in gone) for index in range(count)}),
    ]


def _state(changes: list[Change], *, gone: bool) -> tuple[str, str]:
    if gone:
        return "bad", "only here"
    if not changes:
        return "good", "the same"
    stored = any("values" in change.what or "scale" in change.what or "zero point" in change.what for change in changes)
    return ("hot3", "numbers differ") if stored else ("warning", "form differs")
