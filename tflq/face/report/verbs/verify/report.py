"""The report of a verification: the verdict, where and what differs, what to type next, every operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tflq.comparison.inspection.constants import Constants
from tflq.comparison.inspection.difference import Difference
from tflq.comparison.verification.report import Report as Verification
from tflq.comparison.verification.results import OperatorResult, Status, TensorResult
from tflq.comparison.verification.results import Verdict as Word
from tflq.escaping import quoted
from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    Code,
    Fact,
    Figures,
    Graph,
    Inline,
    InText,
    Next,
    Note,
    OnPage,
    Operator,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.changes import change_blocks
from tflq.face.report.differences import histogram_text, how_far
from tflq.face.report.graph.colouring import Colouring
from tflq.face.report.names import short_name
from tflq.face.report.numbers import counted
from tflq.face.report.pictures import Strip
from tflq.face.report.stages import stage_text
from tflq.face.report.verbs.verify.texts import (
    LISTED,
    coverage_texts,
    first_text,
    next_steps,
    promise_texts,
    sides_of,
    summary,
    what_ran,
)

STYLES = {
    Word.SAME: "good",
    Word.CLOSE: "warning",
    Word.DIFFERS: "bad",
    Word.EXPLAINED: "warning",
    Word.ACCEPTED: "warning",
    Word.INCOMPLETE: "warning",
    Word.NOTHING: "bad",
}
_SHADES = {
    Status.EXACT: "good",
    Status.CLOSE: "warning",
    Status.DIFFERS: "bad",
    Status.NOT_COMPARED: "unknown",
    Status.NOT_WRITTEN: "unknown",
}


def verify_report(found: Verification, *, all_operators: bool = False, options: Sequence[str] = ()) -> Report:
    """Build the report of a verification. Text lists exact operators only if `all_operators` is True.

    `options` are words of the command about how a golden is read.
    """
    path = found.model.path or "the model"
    return Report(
        "verify",
        list(_blocks(found, all_operators, options)),
        about=Code(path),
        title=f"{found.verdict.value.upper()}: {found.model.path or 'model'}",
    )


def verify_card(found: Verification) -> Report:
    """Build the report with every operator, for a card."""
    return verify_report(found, all_operators=True)


def _blocks(found: Verification, all_operators: bool, options: Sequence[str]) -> Iterator[Block]:
    path = found.model.path or "the model"
    yield Verdict(summary(found), STYLES[found.verdict], found.verdict.value.upper(), path)
    yield _brief(found)
    yield Strip("operators: green is the same, red differs", [_SHADES[o.status] for o in found.operators])
    if found.own:
        yield Text(f"{found.own}, the profile of {sides_of(found)[0]}, reproduces every bit; {found.profile} differs.")
        yield from change_blocks(found.changes, found.own, found.profile)
    details = list(_details(found, all_operators, options))
    if found.verdict == Word.ACCEPTED and not all_operators:
        yield OnPage(lambda _view: details)  # nothing of it is to be looked at
    else:
        yield from details
    yield Fact(what_ran(found), "faint")


def _details(found: Verification, all_operators: bool, options: Sequence[str]) -> Iterator[Block]:
    """Yield the first divergent operator, what was compared, and the operators."""
    first, output = found.first_divergent, _first_output(found)
    details: list[Block] = []
    if first is not None and first.worst is not None:
        head = Text(f"First divergent operator: {first.place} {first.op} {first_text(first.worst, sides_of(found))}")
        title = f"First divergent operator: {first.place} {first.op} (version {first.version})"
        details = list(_tensor_blocks(found, first.worst, first.constants))
        yield InText([head])
        yield OnPage(lambda _view: [Section("first", title, details)])
    elif output is not None:
        yield InText([Text(f"First divergent output: {quoted(output.name)} {first_text(output, sides_of(found))}")])
        outputs = (tensor for tensor in found.outputs if tensor.covered_by is None)
        details = [block for tensor in outputs for block in _tensor_blocks(found, tensor)]
    yield Next(list(next_steps(found, options)))
    yield InText(details)
    yield from map(Fact, promise_texts(found))
    yield from map(Fact, coverage_texts(found))
    yield Section("notes", "Notes", list(map(Note, found.notes)))
    yield OnPage(lambda _view: [] if len(found.signatures) > 1 else [_graph(found)])
    yield Section("operators", "Operators", list(_operators(found, all_operators)))
    yield OnPage(lambda _view: [Section("outputs", "Outputs", [b for t in found.outputs for b in _output(found, t)])])


def _first_output(found: Verification) -> TensorResult | None:
    """Return the first output that differs, if no operator explains the difference."""
    if found.first_divergent is not None:
        return None
    return next((tensor for tensor in found.outputs if tensor.status == Status.DIFFERS), None)


def _brief(found: Verification) -> Brief:
    first, output = found.first_divergent, _first_output(found)
    if first is not None:
        where = f"First divergent operator: {first.place} {first.op} {first_text(first.worst, sides_of(found))}"
        return Brief(where, f"Next: .first_divergent; tflq.inspect(model).operators[{first.index}]")
    if output is not None:
        where = f"First divergent output: {first_text(output, sides_of(found))}"
        return Brief(where, 'Next: tflq.verify(model, mode="isolated") finds the operator')
    return Brief(f"{next(coverage_texts(found))}; {what_ran(found)}", "Next: .operators, .outputs, .coverage, .notes")


def _tensor_blocks(found: Verification, tensor: TensorResult, constants: Constants | None = None) -> Iterator[Block]:
    """Yield how many elements differ, how far, and the output stage; on a page also the first element and a chart."""
    d = tensor.difference
    if d is None or d.same:
        return
    lines = [f"tensor {tensor.index} {quoted(tensor.name)} {tensor.type} {list(tensor.shape)}"]
    lines += [d.problem] if d.problem else []
    lines += [how_far(d)] if d.differing else []
    lines += [f"got - expected: {histogram_text(d)}"] if d.histogram else []
    yield from (Text(line, indent=1) for line in lines)
    if d.first is not None:
        first = f"first {first_text(tensor, sides_of(found))}"
        yield OnPage(lambda _view: [Text(first)])
        channel = d.first.index[-1] if d.first.index else 0
        stages = constants.stages if constants else ()
        yield from (Text(f"stage {stage_text(stage, channel)}", indent=1) for stage in stages)
    if d.histogram:
        yield OnPage(lambda _view: [_distances(tensor, d)])


def _distances(tensor: TensorResult, d: Difference) -> Figures:
    from tflq.face.report.html.differences import distance_figure

    return Figures([distance_figure(d, _name(tensor), "got - expected")])


def _name(tensor: TensorResult) -> str:
    return f"tensor {tensor.index} {quoted(short_name(tensor.name))}"


_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("status", "<"),
    ("differing", ">"),
    ("largest", ">"),
    ("bias", ">"),
    ("promise", "<"),
    ("tensor", "<"),
)


def _row(operator: OperatorResult, many: bool) -> list[Inline]:
    """Return the cells of _COLUMNS; the last one is the tensor, or the reason why it was not compared.

    With `many` signatures, operators are not links.
    """
    tensor = operator.worst or (operator.tensors[0] if operator.tensors else None)
    difference = tensor.difference if tensor else None
    return [
        operator.place,
        operator.op if many else Operator(operator.index, operator.op),
        operator.status.value,
        f"{difference.differing:,} of {difference.elements:,}" if difference else "",
        f"{difference.largest:,} {difference.unit}" if difference and difference.differing else "",
        f"{difference.bias:+.3f}" if difference and difference.differing else "",
        str(operator.promise or ""),
        operator.reason or ("has no results" if operator.silent else _place(tensor)),
    ]


def _place(tensor: TensorResult | None) -> str:
    if tensor is None:
        return ""
    return tensor.reason or f"{tensor.index} {tensor.type} {list(tensor.shape)}"


def _operators(found: Verification, all_operators: bool) -> Iterator[Block]:
    """Yield the operators that are not exact; on a page, or if all are asked for, the exact ones too."""
    many = len(found.signatures) > 1  # a page links to operators of the subgraph that it draws
    if all_operators:
        yield Table(_COLUMNS, [_row(o, many) for o in found.operators])
        return
    exact = [_row(operator, many) for operator in found.operators if operator.status == Status.EXACT]
    yield Table(_COLUMNS, [_row(o, many) for o in found.operators if o.status != Status.EXACT], most=LISTED)
    yield OnPage(lambda _view: [Table(_COLUMNS, exact, fold=f"{counted(len(exact), 'operator')} exact")])


# --- Pages only ------------------------------------------------------------------------------------------------------


def verify_colourings(found: Verification) -> tuple[Colouring, ...]:
    """Return colourings of operators by difference and by status (first if nothing differs); none without operators."""
    from tflq.face.report.html.differences import difference_colourings

    if not found.operators or len(found.signatures) > 1:  # a page draws one subgraph
        return ()
    differences = {o.index: [t.difference for t in o.tensors if t.difference is not None] for o in found.operators}
    statuses = {o.index: (_SHADES[o.status], o.status.value) for o in found.operators}
    largest, share, status = difference_colourings(differences, statuses)
    return (status, largest, share) if found.first_divergent is None else (largest, share, status)


def _graph(found: Verification) -> Graph:
    first, panels = found.first_divergent, {operator.index: _panel(found, operator) for operator in found.operators}
    return Graph(verify_colourings(found), panels, None if first is None else first.index)


def _panel(found: Verification, operator: OperatorResult) -> Iterable[Block]:
    style = _SHADES[operator.status]
    reason = f": {operator.reason}" if operator.reason else ""
    yield Text(Badge(operator.status.value + reason, "soft" if style == "unknown" else style))
    for tensor in operator.tensors:
        if tensor.status != Status.EXACT:
            yield from _tensor(found, tensor)


def _tensor(found: Verification, tensor: TensorResult) -> Iterator[Block]:
    d = tensor.difference
    if d is None:
        yield Text(f"{_name(tensor)}: {tensor.reason or 'not compared'}", "soft")
    elif d.same:
        gaps = f"; {tensor.reason}" if tensor.reason else ""
        yield Text(f"{_name(tensor)}: all {d.elements:,} elements are the same{gaps}")
    else:
        yield from _tensor_blocks(found, tensor)


def _output(found: Verification, tensor: TensorResult) -> Iterator[Block]:
    if tensor.covered_by is None:
        yield from _tensor(found, tensor)
    else:
        yield Text(f"{_name(tensor)}: {tensor.status.value}, as a result of operator {tensor.covered_by}")
