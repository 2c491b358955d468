"""Reports for people: what matters first, then tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

from tflq.kernels.kernel import EXACT
from tflq.report.layout import Line, table
from tflq.verification.constants import Constants, Stage
from tflq.verification.results import OperatorResult, Report, Status, TensorResult, Verdict

if TYPE_CHECKING:
    from tflq.verification.comparing import Difference
    from tflq.verification.inspection import Inspection, OperatorFacts

#: Operators that a verification lists unless all are asked for.
LISTED = 20
_STYLES = {Verdict.SAME: "good", Verdict.CLOSE: "warning", Verdict.DIFFERS: "bad", Verdict.INCOMPLETE: "warning"}


# --- verify ----------------------------------------------------------------------------------------------------------


def report_lines(report: Report, *, all_operators: bool = False) -> Iterator[Line]:
    """Verdict; first divergent operator; how many, how far, which way; expected and got with the stage; what next."""
    yield Line(f"{report.verdict.value.upper()} {_summary(report)}", _STYLES[report.verdict])
    yield from map(Line, _promise_lines(report))
    first = report.first_divergent
    if first is not None:
        yield Line(f"First divergent operator: {first.index} {first.op} (version {first.version})")
        yield from map(Line, _tensor_lines(first.worst, first.constants, _sides(report)))
    elif report.verdict == Verdict.DIFFERS:
        for tensor in report.outputs:
            yield from map(Line, _tensor_lines(tensor, None, _sides(report)))
    for text in next_steps(report):
        yield Line(text, "strong")
    for note in report.notes:
        yield Line(f"note: {note}", "warning")
    listed = [o for o in report.operators if all_operators or o.status != Status.EXACT]
    shown = listed if all_operators else listed[:LISTED]
    if shown:
        yield from table(_OPERATOR_COLUMNS, map(_operator_row, shown))
    if len(listed) > len(shown):
        yield Line(f"... and {len(listed) - len(shown)} more (--all shows them)")
    yield Line(_what_ran(report), "faint")


def _summary(report: Report) -> str:
    counts = {status: sum(o.status == status for o in report.operators) for status in Status}
    what = [f"{report.model.path or 'the model'}: {report.differing:,} of {report.compared:,} elements differ"]
    if report.operators:
        parts = [f"{counts[Status.EXACT]} of {_count(len(report.operators), 'operator')} exact"]
        parts += [f"{counts[s]} {s.value}" for s in (Status.CLOSE, Status.DIFFERS, Status.NOT_COMPARED) if counts[s]]
        what.append(", ".join(parts))
    return "; ".join(what) + f" ({report.mode}, {_count(report.inputs.samples, 'sample')})"


def _promise_lines(report: Report) -> Iterator[str]:
    """What the profile promises, where that is less than all bits; and how near it came."""
    made = [r.promise for r in report.operators or report.outputs if r.promise is not None]
    if all(promise == EXACT for promise in made):
        return
    counts = Counter(str(promise) for promise in made)
    yield "Promised: " + ", ".join(f"{count} {words}" for words, count in counts.items())
    near = [t for t in (*report.outputs, *(t for o in report.operators for t in o.tensors)) if t.status == Status.CLOSE]
    if near:
        largest = max(t.difference.at_scale or 0 for t in near if t.difference is not None)
        yield (
            f"{_count(len(near), 'tensor')} not the same bits, but within what was measured: "
            f"by up to {largest:,} ULP of the largest magnitude"
        )


def _sides(report: Report) -> tuple[str, str]:
    """Who is expected, and who is held against it."""
    runtime = report.against
    name = runtime.get("name") if isinstance(runtime, Mapping) else runtime.name
    return str(name or "golden"), f"profile {report.profile}"


def _tensor_lines(
    tensor: TensorResult | None, constants: Constants | None, sides: tuple[str, str]
) -> Iterator[str]:  # fmt: skip
    found = tensor.difference if tensor else None
    if tensor is None or found is None or found.same:
        return
    yield f"  tensor {tensor.index} {tensor.name!r} {tensor.type} {list(tensor.shape)}"
    if found.problem:
        yield f"  {found.problem}"
    if found.differing:
        yield f"  {found.differing:,} of {found.elements:,} elements differ{_distance(found)}"
    if found.histogram:
        yield f"  got - expected: {histogram_text(found)}"
    if found.first is not None:
        sample = f" of sample {found.first.sample}" if found.first.sample else ""
        yield (
            f"  first at {list(found.first.index)}{sample}: expected {found.first.expected} ({sides[0]}), "
            f"got {found.first.got} ({sides[1]})"
        )
        channel = found.first.index[-1] if found.first.index else 0
        for stage in constants.stages if constants else ():
            yield f"  stage {stage_text(stage, channel)}"


def _distance(found: Difference) -> str:
    if not found.unit or not found.above + found.below:
        return ""
    return (
        f", by up to {found.largest:,} {found.unit}: {found.above:,} above, {found.below:,} below, "
        f"{found.bias:+.3f} on average"
    )


def histogram_text(found: Difference) -> str:
    """How many elements differ by how much; what lies beyond the histogram's reach is counted at its ends."""
    from tflq.verification.comparing import HISTOGRAM_REACH

    def label(distance: int) -> str:
        return f"{distance:+d}" if abs(distance) < HISTOGRAM_REACH else f"{distance:+d} or beyond"

    return ", ".join(f"{label(distance)}: {count:,}" for distance, count in found.histogram)


def next_steps(report: Report) -> Iterator[str]:
    """The command to type next, ready to be copied."""
    model = quote(report.model.path) if report.model.path else "MODEL"
    first = report.first_divergent
    if report.golden and report.verdict == Verdict.DIFFERS:
        profile = "" if report.profile == "litert-ref" else f" --profile {quote(report.profile)}"
        yield f"Next: tflq explain {model} --dump {quote(report.golden)}{profile}"
    elif first is not None:
        yield f"Next: tflq inspect {model} --op {first.index}"
    elif report.verdict in (Verdict.DIFFERS, Verdict.CLOSE) and report.mode == "cumulative":
        yield f"Next: tflq verify {model} --mode isolated"
    elif report.verdict == Verdict.INCOMPLETE:
        yield f"Next: tflq inspect {model}"


_OPERATOR_COLUMNS = (
    ("#", ">"), ("operator", "<"), ("status", "<"), ("differing", ">"), ("largest", ">"), ("bias", ">"),
    ("promise", "<"), ("tensor", "<"),
)  # fmt: skip


def _operator_row(operator: OperatorResult) -> list[str]:
    tensor = operator.worst or (operator.tensors[0] if operator.tensors else None)
    found = tensor.difference if tensor else None
    return [
        str(operator.index),
        operator.op,
        operator.status.value,
        f"{found.differing:,} of {found.elements:,}" if found else "",
        f"{found.largest:,} {found.unit}" if found and found.differing else "",
        f"{found.bias:+.3f}" if found and found.differing else "",
        str(operator.promise or ""),
        operator.reason or _place(tensor),
    ]


def _place(tensor: TensorResult | None) -> str:
    if tensor is None:
        return ""
    return tensor.reason or f"{tensor.index} {tensor.type} {list(tensor.shape)}"


def _what_ran(report: Report) -> str:
    return (
        f"profile {report.profile} against {runtime_text(report.against)}"
        + (f" (golden {report.golden})" if report.golden else "")
        + f"; inputs {report.inputs.source}"
        + (f", seed {report.inputs.seed}" if report.inputs.seed is not None else "")
    )


def runtime_text(runtime: Any) -> str:
    """Exactly what ran, on one line."""
    fact = runtime.get if isinstance(runtime, Mapping) else lambda name, default="": getattr(runtime, name, default)
    if not fact("package", ""):
        return "an unnamed runtime"
    text = f"{fact('package', '')} {fact('version', '')} {fact('resolver', '')}, " + _count(
        fact("threads", 1), "thread"
    )
    if fact("delegate", ""):
        text += f", {fact('delegate', '')} in {_count(sum(fact('delegated', ())), 'partition')}"
    return f"{text}, {fact('platform', '')}"


# --- inspect ---------------------------------------------------------------------------------------------------------


_INSPECT_COLUMNS = (
    ("#", ">"), ("operator", "<"), ("output", "<"), ("real multiplier", ">"), ("Q31", ">"), ("shift", ">"),
    ("zp in", ">"), ("zp out", ">"), ("clamp", "<"), ("MACs", ">"), ("promise", "<"),
)  # fmt: skip


def inspection_lines(inspection: Inspection) -> Iterator[Line]:
    """The model at a glance and one row per operator."""
    model = inspection.model
    yield Line(f"{model.path or 'model'}: {model.size:,} bytes, SHA-256 {model.sha256}", "strong")
    constants = sum(t.bytes for t in inspection.tensors)
    yield Line(
        f"{_count(len(inspection.operators), 'operator')}, {_count(len(inspection.tensors), 'tensor')}, "
        f"{constants:,} bytes of constants, {inspection.macs:,} MACs; profile {inspection.profile}"
        + (f"; {inspection.subgraphs} subgraphs, the first is shown" if inspection.subgraphs > 1 else "")
    )
    for kind, indices in (("input", inspection.inputs), ("output", inspection.outputs)):
        for index in indices:
            yield Line(f"{kind} {_tensor_text(inspection, index)}")
    yield from table(_INSPECT_COLUMNS, (_row(inspection, operator) for operator in inspection.operators))
    if inspection.unsupported:
        yield Line(f"{len(inspection.unsupported)} not supported under {inspection.profile}:", "warning")
        for operator in inspection.unsupported:
            yield Line(f"  {operator.index} {operator.op}: {operator.reason}", "warning")


def _row(inspection: Inspection, operator: OperatorFacts) -> list[str]:
    outputs = [t for t in operator.outputs if 0 <= t < len(inspection.tensors)]
    output = inspection.tensors[outputs[0]] if outputs else None
    first = next((t for t in operator.inputs if 0 <= t < len(inspection.tensors)), None)
    source = inspection.tensors[first] if first is not None else None
    stages = operator.constants.stages if operator.constants else ()
    return [
        str(operator.index),
        operator.op,
        (f"{output.type} {list(output.shape)}" if output else ""),
        ("\n".join(_span(stage.real) for stage in stages) or ("unsupported" if operator.reason else "")),
        ("\n".join(_span(stage.mantissa) for stage in stages)),
        ("\n".join(_span(stage.shift) for stage in stages)),
        _span(source.zero_point) if source else "",
        _span(output.zero_point) if output else "",
        (_clamp(operator.constants)),
        f"{operator.macs:,}" if operator.macs else "",
        str(operator.promise or ""),
    ]


def _clamp(constants: Constants | None) -> str:
    if constants is None:
        return ""
    lines = [f"[{stage.low}, {stage.high}]" for stage in constants.stages if stage.low is not None]
    scalars = {name.rpartition(".")[2]: value for name, value in constants.scalars}
    if not lines and "low" in scalars and "high" in scalars:
        lines = [f"[{scalars['low']:g}, {scalars['high']:g}]"]
    return "\n".join(lines)


def operator_lines(inspection: Inspection, index: int) -> Iterator[Line]:
    """Everything about operator `index`."""
    yield from map(Line, _operator_texts(inspection, inspection.operators[index]))


def _operator_texts(inspection: Inspection, operator: OperatorFacts) -> Iterator[str]:
    yield f"operator {operator.index} {operator.op}, version {operator.version}, {operator.macs:,} MACs"
    for kind, tensors in (("input", operator.inputs), ("output", operator.outputs)):
        for position, tensor in enumerate(tensors):
            yield f"  {kind} {position}: " + (_tensor_text(inspection, tensor) if tensor >= 0 else "absent")
    if operator.options:
        yield "  options: " + ", ".join(f"{name} {value}" for name, value in operator.options)
    if operator.promise is not None:
        why = f": {operator.promise.reason}" if operator.promise.reason else ""
        yield f"  promise: {operator.promise}{why}"
    if operator.reason:
        yield f"  not supported under {inspection.profile}: {operator.reason}"
    elif operator.constants is None:
        yield "  bound when the model runs: its shapes hang on computed values"
    else:
        for stage in operator.constants.stages:
            yield f"  stage {stage_text(stage)}"
            if len(stage.real) > 1:
                for channel in range(len(stage.real)):
                    yield f"    {stage_text(stage, channel)}"
        for name, value in operator.constants.scalars:
            yield f"  {name} {value}"


def _tensor_text(inspection: Inspection, index: int) -> str:
    if not 0 <= index < len(inspection.tensors):
        return f"tensor {index} (there is none)"
    tensor = inspection.tensors[index]
    text = f"tensor {index} {tensor.name!r} {tensor.type} {list(tensor.shape)}"
    if tensor.signature is not None and tensor.signature != tensor.shape:
        text += f" signature {list(tensor.signature)}"
    if tensor.scale:
        text += f", scale {_span(tensor.scale)}, zero point {_span(tensor.zero_point)}"
    return text + (f" ({tensor.kind})" if tensor.kind in ("constant", "variable") else "")


# --- both ------------------------------------------------------------------------------------------------------------


def stage_text(stage: Stage, channel: int | None = None) -> str:
    """An output stage on one line, for one channel or for all."""

    def pick(values: Sequence[Any]) -> str:
        if channel is None or len(values) <= 1:
            return _span(values)
        return _number(values[channel]) if channel < len(values) else _span(values)

    where = f", channel {channel}" if channel is not None and len(stage.real) > 1 else ""
    text = f"{stage.field or 'output'}: {stage.kind}{where}, real {pick(stage.real)}"
    if stage.mantissa:
        text += f", Q31 {pick(stage.mantissa)}, shift {pick(stage.shift)}"
    if stage.zero_point is not None:
        text += f", zero point {stage.zero_point}, clamp [{stage.low}, {stage.high}]"
    return text


def _span(values: Sequence[Any]) -> str:
    """A value, or the range of several."""
    if not values:
        return ""
    low, high = min(values), max(values)
    return _number(low) if low == high else f"{_number(low)} .. {_number(high)}"


def _number(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
