"""A verification in lines: the verdict first, then where and what, then what to type next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import TYPE_CHECKING

from tflq.escaping import quoted
from tflq.inspection.constants import Constants
from tflq.kernels.exactness import EXACT
from tflq.report.layout import Line, table
from tflq.verification.report import Report
from tflq.verification.results import Mode, OperatorResult, Status, TensorResult, Verdict

if TYPE_CHECKING:
    from tflq.inspection.difference import Difference
from tflq.report.differences import histogram_text
from tflq.report.layout import counted
from tflq.report.runtimes import runtime_text
from tflq.report.stages import stage_text

#: Operators that a verification lists unless all are asked for.
LISTED = 20


STYLES = {Verdict.SAME: "good", Verdict.CLOSE: "warning", Verdict.DIFFERS: "bad", Verdict.INCOMPLETE: "warning"} | {
    Verdict.NOTHING: "bad"
}


def report_lines(report: Report, *, all_operators: bool = False) -> Iterator[Line]:
    """Yield the verdict, the first difference, the next command, then the differences and output stages in full."""
    yield Line(f"{report.verdict.value.upper()} {summary(report)}", STYLES[report.verdict])
    first = report.first_divergent
    if first is not None:
        yield Line(f"First divergent operator: {first.index} {first.op} {first_text(first.worst, sides_of(report))}")
    elif report.verdict == Verdict.DIFFERS:
        output = next((t for t in report.outputs if t.status == Status.DIFFERS), None)
        if output is not None:
            yield Line(f"First divergent output: {quoted(output.name)} {first_text(output, sides_of(report))}")
    for text in next_steps(report):
        yield Line(text, "strong")
    if first is not None:
        yield from map(Line, tensor_texts(first.worst, first.constants))
    elif report.verdict == Verdict.DIFFERS:
        for tensor in report.outputs:
            if tensor.covered_by is None:
                yield from map(Line, tensor_texts(tensor, None))
    yield from map(Line, promise_texts(report))
    yield from map(Line, coverage_texts(report))
    for note in report.notes:
        yield Line(f"note: {note}", "warning")
    listed = [o for o in report.operators if all_operators or o.status != Status.EXACT]
    shown = listed if all_operators else listed[:LISTED]
    if shown:
        yield from table(OPERATOR_COLUMNS, map(operator_row, shown))
    if len(listed) > len(shown):
        yield Line(f"... and {len(listed) - len(shown)} more (--all shows them)")
    yield Line(what_ran(report), "faint")


def summary(report: Report) -> str:
    """How many elements and operators differ, in one line."""
    counts = {status: sum(o.status == status for o in report.operators) for status in Status}
    what = [f"{report.model.path or 'the model'}: {report.differing:,} of {report.compared:,} elements differ"]
    if report.operators:
        parts = [f"{counts[Status.EXACT]} of {counted(len(report.operators), 'operator')} exact"]
        parts += [f"{counts[s]} {s.value}" for s in (Status.CLOSE, Status.DIFFERS, Status.NOT_COMPARED) if counts[s]]
        what.append(", ".join(parts))
    return "; ".join(what) + f" ({report.mode.value}, {counted(report.inputs.samples, 'sample')})"


def coverage_texts(report: Report) -> Iterator[str]:
    """Yield how much was compared of how much, and what was not."""
    coverage = report.coverage
    (operators, of_operators), (outputs, of_outputs) = coverage.operators, coverage.outputs
    yield f"Compared: {operators:,} of {of_operators:,} operators, {outputs:,} of {of_outputs:,} outputs"
    yield from (f"  only with what runs it: {text}" for text in coverage.inside)
    yield from (f"  not compared: {text}" for text in coverage.missing[:LISTED])
    if len(coverage.missing) > LISTED:
        yield f"  not compared: {len(coverage.missing) - LISTED} more (--json has all)"


def promise_texts(report: Report) -> Iterator[str]:
    """Yield what the profile promises where that is less than equal bits, and the largest difference seen there."""
    promises = [r.promise for r in report.operators or report.outputs if r.promise is not None]
    if any(promise != EXACT for promise in promises):
        counts = Counter(str(promise) for promise in promises)
        yield "Promised: " + ", ".join(f"{count} {words}" for words, count in counts.items())
    near = [t for t in report.tensors if t.status == Status.CLOSE]
    if near:
        tolerated = sum(t.tolerance is not None for t in near)
        largest = max(t.difference.at_scale or 0 for t in near if t.difference is not None)
        yield (
            f"{counted(len(near), 'tensor')} not the same bits, but within what was measured"
            + (f" or allowed ({tolerated} by a tolerance)" if tolerated else "")
            + (f": by up to {largest:,} ULP of the largest magnitude" if largest else "")
        )


def sides_of(report: Report) -> tuple[str, str]:
    """Return the names of the expected side and of the side compared with it."""
    runtime = report.against
    name = runtime.get("name") if isinstance(runtime, Mapping) else runtime.name
    return str(name or "golden"), f"profile {report.profile}"


def first_text(tensor: TensorResult | None, sides: tuple[str, str]) -> str:
    """Return the index of the first differing element with the expected and the actual value."""
    first = None if tensor is None or tensor.difference is None else tensor.difference.first
    if first is None:
        return ""
    sample = f" of sample {first.sample}" if first.sample else ""
    return f"at {list(first.index)}{sample}: expected {first.expected} ({sides[0]}), got {first.got} ({sides[1]})"


def tensor_texts(
    tensor: TensorResult | None, constants: Constants | None, sides: tuple[str, str] | None = None
) -> Iterator[str]:
    """Yield how many elements differ, how far, and the output stage; with `sides`, both values of the first."""
    difference = tensor.difference if tensor else None
    if tensor is None or difference is None or difference.same:
        return
    yield f"  tensor {tensor.index} {quoted(tensor.name)} {tensor.type} {list(tensor.shape)}"
    if difference.problem:
        yield f"  {difference.problem}"
    if difference.differing:
        yield f"  {difference.differing:,} of {difference.elements:,} elements differ{_distance(difference)}"
    if difference.histogram:
        yield f"  got - expected: {histogram_text(difference)}"
    if difference.first is not None:
        if sides is not None:
            yield f"  first {first_text(tensor, sides)}"
        channel = difference.first.index[-1] if difference.first.index else 0
        for stage in constants.stages if constants else ():
            yield f"  stage {stage_text(stage, channel)}"


def _distance(d: Difference) -> str:
    if not d.unit or not d.above + d.below:
        return ""
    floats = "" if d.absolute is None else f" ({d.absolute:.3g} absolute, {d.relative:.3g} relative)"
    return f", by up to {d.largest:,} {d.unit}{floats}: {d.above:,} above, {d.below:,} below, {d.bias:+.3f} on average"


def next_steps(report: Report) -> Iterator[str]:
    """The command to type next, ready to be copied."""
    model = quote(report.model.path) if report.model.path else "MODEL"
    first = report.first_divergent
    if report.golden and report.verdict == Verdict.DIFFERS:
        profile = "" if report.profile == "litert-ref" else f" --profile {quote(report.profile)}"
        yield f"Next: tflq explain {model} --dump {quote(report.golden)}{profile}"
    elif first is not None:
        yield f"Next: tflq inspect {model} --op {first.index}"
    elif report.verdict in (Verdict.DIFFERS, Verdict.CLOSE) and report.mode == Mode.CUMULATIVE:
        yield f"Next: tflq verify {model} --mode isolated"
    elif report.verdict in (Verdict.INCOMPLETE, Verdict.NOTHING):
        yield f"Next: tflq inspect {model}"


OPERATOR_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("status", "<"),
    ("differing", ">"),
    ("largest", ">"),
    ("bias", ">"),
    ("promise", "<"),
    ("tensor", "<"),
)


def operator_row(operator: OperatorResult) -> list[str]:
    """Index, operator, status, differing elements, largest difference, bias, promise, and the tensor or a reason."""
    tensor = operator.worst or (operator.tensors[0] if operator.tensors else None)
    difference = tensor.difference if tensor else None
    return [
        str(operator.index),
        operator.op,
        operator.status.value,
        f"{difference.differing:,} of {difference.elements:,}" if difference else "",
        f"{difference.largest:,} {difference.unit}" if difference and difference.differing else "",
        f"{difference.bias:+.3f}" if difference and difference.differing else "",
        str(operator.promise or ""),
        operator.reason or _place(tensor),
    ]


def _place(tensor: TensorResult | None) -> str:
    if tensor is None:
        return ""
    return tensor.reason or f"{tensor.index} {tensor.type} {list(tensor.shape)}"


def what_ran(report: Report) -> str:
    """Profile, runtime and inputs."""
    return (
        f"profile {report.profile} against {runtime_text(report.against)}"
        + (f" (golden {report.golden})" if report.golden else "")
        + f"; inputs {report.inputs.source}"
        + (f", seed {report.inputs.seed}" if report.inputs.seed is not None else "")
    )
