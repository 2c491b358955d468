"""The reports of `tflq verify`, of one model or several: what differs and where, as text, document and JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from shlex import quote
from xml.etree import ElementTree

from tflq.comparison.inspection.difference import Difference
from tflq.comparison.inspection.prepared import Constants
from tflq.comparison.results import (
    NOT_WRITTEN,
    CompareMode,
    GoldenCoverage,
    OperatorResult,
    Status,
    TensorResult,
    Verdict,
)
from tflq.comparison.results import Verdict as Word
from tflq.comparison.verification.report import Verification
from tflq.engine.kernels.kernel import EXACT
from tflq.face.report.blocks import (
    Badge,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Graph,
    Headline,
    Inline,
    InText,
    Next,
    Note,
    OnPage,
    OperatorBlock,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.verification import (
    CoverageDocument,
    ExplainedDocument,
    ShareDocument,
    VerifiedModelDocument,
    VerifyDocument,
    VerifySummaryDocument,
)
from tflq.face.report.graph.colouring import Colouring
from tflq.face.report.joint import change_blocks
from tflq.face.report.matrices import Strip
from tflq.face.report.several import FAILED, JUnitCase, Outcome, error_of, junit_suite, numbered, stem
from tflq.face.report.wording import counted, histogram_text, how_far, listed, runtime_text, short_name, stage_text
from tflq.texts import facts_of, printable, quoted, shown


def verify_document(report: Verification) -> VerifyDocument:
    """Return the document of a verification: `schemas/verify.schema.json`."""
    first = report.first_divergent
    return filled(
        VerifyDocument,
        report,
        signatures={name: report.of(name) for name in report.signatures},
        first_divergent=first.index if first else None,
        first_divergent_signature=first.signature or None if first else None,
        coverage=_coverage(report.coverage),
        explained=filled(ExplainedDocument, report, profile=report.own) if report.own else None,
        facts=facts_of(report.notes),
    )


def _coverage(coverage: GoldenCoverage) -> CoverageDocument:
    shares = (coverage.operators, coverage.outputs)
    operators, outputs = (filled(ShareDocument, None, compared=compared, of=count) for compared, count in shares)
    return filled(CoverageDocument, coverage, operators=operators, outputs=outputs)


_OTHERS = (Status.CLOSE, Status.DIFFERS, Status.NOT_COMPARED, Status.NOT_WRITTEN)
#: Operators that text lists unless all are asked for.
LISTED = 20


def summary(found: Verification) -> str:
    """Return how many elements and operators differ, in one line."""
    counts = {status: sum(o.status == status for o in found.operators) for status in Status}
    what = [", ".join(found.signatures)] if found.signatures else []
    what += [f"{found.differing:,} of {found.compared:,} elements differ"]
    if found.operators:
        parts = [f"{counts[Status.EXACT]} of {counted(len(found.operators), 'operator')} exact"]
        parts += [f"{counts[s]} {s.value}" for s in _OTHERS if counts[s]]
        what.append(", ".join(parts))
    count = counted(found.inputs.samples, "step" if found.signatures else "sample")
    return "; ".join(what) + f" ({found.mode.value}, {count})"


def coverage_texts(found: Verification) -> Iterator[str]:
    """Yield how much was compared of how much, and what was not."""
    coverage = found.coverage
    (operators, of_operators), (outputs, of_outputs) = coverage.operators, coverage.outputs
    unwritten = counted(len(coverage.unwritten), "tensor")
    yield f"Compared: {operators:,} of {of_operators:,} operators, {outputs:,} of {of_outputs:,} outputs" + (
        f"; {unwritten} not written by the runtime" if coverage.unwritten else ""
    )
    yield from map(" ".join, signature_verdicts(found).items())
    if found.others:
        yield f"  not asked for: {', '.join(found.others)}"
    yield from (f"  only with what runs it: {text}" for text in coverage.inside[:LISTED])
    if len(coverage.inside) > LISTED:
        yield f"  only with what runs it: {len(coverage.inside) - LISTED} more (--json has all)"
    yield from (f"  not compared: {text}" for text in coverage.missing[:LISTED])
    if len(coverage.missing) > LISTED:
        yield f"  not compared: {len(coverage.missing) - LISTED} more (--json has all)"


def signature_verdicts(found: Verification) -> dict[str, str]:
    """Return the verdict on each signature of a model that has several."""
    parts = {name: found.of(name) for name in found.signatures}
    return {
        f"  {name}:": f"{part.verdict.value.upper()}, {part.differing:,} of {part.compared:,} elements differ"
        for name, part in parts.items()
    }


def promise_texts(found: Verification) -> Iterator[str]:
    """Yield the promises that are weaker than equal bits, and the largest difference in their results."""
    promises = [(r.promise, getattr(r, "op", "")) for r in found.operators or found.outputs if r.promise is not None]
    if any(promise != EXACT for promise, _ in promises):
        ops: dict[str, list[str]] = {}
        for promise, op in promises:
            ops.setdefault(str(promise).replace(*_ON_ONE_LIBM), []).append(op)
        yield "Promised: " + ", ".join(f"{_who(of, words)} {words}" for words, of in ops.items())
    near = [t for t in found.tensors if t.status == Status.CLOSE]
    unmeasured = [t for t in near if t.tolerance is None and t.promise is not None and t.promise.ulp is None]
    measured = [t for t in near if t not in unmeasured]
    if measured:
        tolerated = sum(t.tolerance is not None for t in measured)
        allowed = f" or allowed ({tolerated} by a tolerance)" if tolerated else ""
        yield _apart(measured, f"not the same bits, but within what was measured{allowed}")
    if unmeasured:
        yield _apart(unmeasured, "not the same bits, which are not promised; how near they should be was not measured")


#: A promise in the words of a reader who does not know the C library's short name.
_ON_ONE_LIBM = ("on the same libm", "if the C library's functions (exp, tanh, ...) are the same")


def _who(ops: Sequence[str], words: str) -> str:
    """Return the number of exact results, or the operators of a weaker promise."""
    names = list(dict.fromkeys(filter(None, ops)))
    return listed(names, 3) if names and words != str(EXACT) else f"{len(ops)}"


def _apart(near: Sequence[TensorResult], words: str) -> str:
    """Return how many tensors differ, in these words, and by how much."""
    largest = max(t.difference.at_scale or 0 for t in near if t.difference is not None)
    reach = f": by up to {largest:,} ULP of the largest magnitude" if largest else ""
    return f"{counted(len(near), 'tensor')} {words}{reach}"


def sides_of(found: Verification) -> tuple[str, str]:
    """Return the names of the expected side and of the side compared with it."""
    runtime = found.against
    name = runtime.get("name") if isinstance(runtime, Mapping) else runtime.name
    return str(name or "golden"), f"profile {found.profile}"


def first_text(tensor: TensorResult | None, sides: tuple[str, str]) -> str:
    """Return the index of the first differing element with the expected and the actual value."""
    first = None if tensor is None or tensor.difference is None else tensor.difference.first
    if first is None:
        return ""
    sample = f" of sample {first.sample}" if first.sample else ""
    return f"at {list(first.index)}{sample}: expected {first.expected} ({sides[0]}), got {first.got} ({sides[1]})"


def next_steps(found: Verification, options: Sequence[str] = ()) -> Iterator[str]:
    """Yield the command to type next, ready to be copied. `options` are words about how a golden is read."""
    model = quote(found.model.path) if found.model.path else "MODEL"
    first = found.first_divergent
    if found.golden and found.differing:
        profile = "" if found.profile == "litert-ref" else f" --profile {quote(found.profile)}"
        yield " ".join((f"tflq explain {model} --dump {quote(found.golden)}{profile}", *map(quote, options)))
    elif first is not None:
        signature = f" --signature {quote(first.signature)}" if first.signature else ""
        yield f"tflq inspect {model}{signature} --op {first.index}"
    elif found.differing and found.mode == CompareMode.CUMULATIVE:
        yield f"tflq verify {model} --mode isolated"
    elif found.verdict in (Verdict.INCOMPLETE, Verdict.NOTHING):
        yield f"tflq inspect {model}"


def what_ran(found: Verification) -> str:
    """Return the profile, the runtime and the inputs."""
    return (
        f"profile {found.profile} against {runtime_text(found.against)}"
        + (f" (golden {found.golden})" if found.golden else "")
        + f"; inputs {found.inputs.source}"
        + (f", seed {found.inputs.seed}" if found.inputs.seed is not None else "")
    )


def junit(report: Verification) -> ElementTree.Element:
    """Return the test suite. A report in which nothing was compared has an error."""
    facts = {
        "profile": report.profile,
        "against": runtime_text(report.against),
        "mode": report.mode.value,
        "verdict": report.verdict.value,
        "compared": next(coverage_texts(report)).removeprefix("Compared: "),
    }
    classname = stem(report.model.path) if report.model.path else report.model.sha256[:12]
    cases = list(_cases(report, classname))
    names = numbered(case.name for case in cases)
    cases = [replace(case, name=printable(name)) for case, name in zip(cases, names, strict=True)]
    if report.verdict == Verdict.NOTHING:
        cases.append(JUnitCase(classname, "anything compared", "error", "nothing was compared"))
    return junit_suite(f"tflq verify {report.model.path or report.model.sha256}", cases, facts)


def _cases(report: Verification, classname: str) -> Iterator[JUnitCase]:
    for operator in report.operators:
        start = f"{shown(operator.signature)}/" if operator.signature else ""
        name = f"{start}{operator.index:04d} {shown(operator.op)}"
        stages = list(map(stage_text, operator.constants.stages if operator.constants else ()))
        yield _case(classname, name, operator.status, operator.tensors, operator.gaps, stages)
    for number, output in report.numbered_outputs:
        if output.covered_by is None:
            start = f"{shown(output.signature)}/" if output.signature else ""
            yield _case(classname, f"{start}output {number}", output.status, [output], output.reason)
    for one in report.apart:
        if not one.callers:
            gaps = f"no operator runs its {one.operators} operators"
            yield _case(classname, f"subgraph {one.index}", Status.NOT_COMPARED, (), gaps)


def _case(
    classname: str, name: str, status: Status, tensors: Sequence[TensorResult], gaps: str, stages: Sequence[str] = ()
) -> JUnitCase:
    """Return a test case. `gaps` describes what was not compared, `stages` the output stages of an operator."""
    if status == Status.DIFFERS:
        texts = [text for tensor in tensors for text in _failure(tensor, tensors)]
        names = [f"tensor {t.index}: {shown(t.name)}" for t in tensors if t.name]
        lines = [*texts, *names, *([f"not compared: {gaps}"] if gaps else []), *stages]
        return JUnitCase(classname, name, "failure", texts[0] if texts else "differs", lines)
    if status == Status.CLOSE:
        lines = [text for tensor in tensors if tensor.status == Status.CLOSE for text in _close(tensor)]
        return JUnitCase(classname, name, "system-out", lines=lines)
    if status in (Status.NOT_COMPARED, Status.NOT_WRITTEN):
        return JUnitCase(classname, name, "skipped", gaps or NOT_WRITTEN)
    return JUnitCase(classname, name)


def _failure(tensor: TensorResult, tensors: Sequence[TensorResult]) -> Iterator[str]:
    """Yield how a tensor differs, with its name if there are several."""
    d = tensor.difference
    if d is None or tensor.status != Status.DIFFERS:
        return
    name = f"{shown(tensor.name) or tensor.index}: " if len(tensors) > 1 else ""
    counts = f"{d.differing} of {d.elements} elements differ, by up to {d.largest} {d.unit}".strip()
    yield name + (d.problem or counts)
    if d.first is not None:
        sample = f" of sample {d.first.sample}" if d.first.sample else ""
        yield f"at {list(d.first.index)}{sample}: expected {d.first.expected}, got {d.first.got}"


def _close(tensor: TensorResult) -> Iterator[str]:
    d = tensor.difference
    if d is not None:
        largest = f"{d.largest} {d.unit}" if d.at_scale is None else f"{d.at_scale} ULP of the largest magnitude"
        promise = f"promised: {tensor.promise or EXACT}"
        yield f"not the same bits: {d.differing} of {d.elements} elements differ, by up to {largest}; {promise}"


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
        about=CodeBlock(path),
        title=f"{found.model.path or 'model'}: tflq verify",
    )


def verify_card(found: Verification) -> Report:
    """Build the report with every operator, for a card."""
    return verify_report(found, all_operators=True)


def _blocks(found: Verification, all_operators: bool, options: Sequence[str]) -> Iterator[Block]:
    path = found.model.path or "the model"
    yield Headline(summary(found), STYLES[found.verdict], found.verdict.value.upper(), path)
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
    yield FactLine(what_ran(found), "faint")


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
    yield from map(FactLine, promise_texts(found))
    yield from map(FactLine, coverage_texts(found))
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
        operator.op if many else OperatorBlock(operator.index, operator.op),
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
        yield TableBlock(_COLUMNS, [_row(o, many) for o in found.operators])
        return
    exact = [_row(operator, many) for operator in found.operators if operator.status == Status.EXACT]
    yield TableBlock(_COLUMNS, [_row(o, many) for o in found.operators if o.status != Status.EXACT], most=LISTED)
    yield OnPage(lambda _view: [TableBlock(_COLUMNS, exact, fold=f"{counted(len(exact), 'operator')} exact")])


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
            yield from _report_tensor(found, tensor)


def _report_tensor(found: Verification, tensor: TensorResult) -> Iterator[Block]:
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
        yield from _report_tensor(found, tensor)
    else:
        yield Text(f"{_name(tensor)}: {tensor.status.value}, as a result of operator {tensor.covered_by}")


def _word(outcome: Outcome[Verification]) -> str:
    """Return the report's verdict, or "failed"."""
    return FAILED if outcome.found is None else outcome.found.verdict.value


#: Verdicts, the gravest first.
_ORDER = (
    Word.DIFFERS.value,
    FAILED,
    Word.NOTHING.value,
    Word.INCOMPLETE.value,
    Word.EXPLAINED.value,
    Word.CLOSE.value,
    Word.ACCEPTED.value,
    Word.SAME.value,
)


def summary_report(outcomes: Sequence[Outcome[Verification]]) -> Report:
    """Build the summary of several models: the worst verdict with counts, the first such model, a row for each."""
    counts = Counter(map(_word, outcomes))
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _ORDER if counts[verdict])
    worst = next(verdict for verdict in _ORDER if counts[verdict])
    style = {"same": "good", "differs": "bad", "failed": "bad", "nothing compared": "bad"}.get(worst, "warning")
    columns = (("verdict", "<"), ("differing", ">"), ("operators exact", ">"), ("model", "<"), ("first", "<"))
    first = next(outcome for outcome in outcomes if _word(outcome) == worst)
    blocks: list[Block] = [Headline(parts, style, worst.upper(), counted(len(outcomes), "model"))]
    if worst != "same":
        blocks.append(Text(f"First: {first.path}: {_where(first)}"))
        if first.found is not None:
            blocks.append(Next([f"tflq verify {quote(first.path)}{_again(first.found)}"]))
    return Report("verify", [*blocks, TableBlock(columns, list(map(_summary_row, outcomes)))])


def _again(report: Verification) -> str:
    if report.golden:
        return f" --golden {quote(report.golden)}"
    name = getattr(report.against, "name", "litert-ref")
    return "" if name == "litert-ref" else f" --against {name}"


def _where(outcome: Outcome[Verification]) -> str:
    if outcome.found is None:
        return str(outcome.error)
    first = outcome.found.first_divergent
    return "" if first is None else f"operator {first.index} {first.op}"


def _summary_row(outcome: Outcome[Verification]) -> list[str]:
    report = outcome.found
    if report is None:
        return [_word(outcome), "", "", outcome.path, str(outcome.error)]
    exact = sum(o.status == Status.EXACT for o in report.operators)
    operators = f"{exact} of {len(report.operators)}" if report.operators else ""
    return [_word(outcome), f"{report.differing:,} of {report.compared:,}", operators, outcome.path, _where(outcome)]


def summary_document(outcomes: Sequence[Outcome[Verification]], code: IntEnum) -> VerifySummaryDocument:
    """Return the summary as a document, with the whole report of each model."""
    models = [
        filled(
            VerifiedModelDocument,
            outcome,
            verdict=_word(outcome),
            report=None if outcome.found is None else verify_document(outcome.found),
            error=error_of(outcome),
        )
        for outcome in outcomes
    ]
    return filled(VerifySummaryDocument, None, exit_code=int(code), models=models)
