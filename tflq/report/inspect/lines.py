"""An inspection in lines: the model, a table of its operators, one operator in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tflq.escaping import quoted
from tflq.inspection.constants import Constants
from tflq.report.numbers import counted
from tflq.report.render.line import Line
from tflq.report.render.text import table

if TYPE_CHECKING:
    from tflq.inspection.operators import Inspection, OperatorFacts
from tflq.report.stages import span, stage_text

OPERATOR_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("output", "<"),
    ("real multiplier", ">"),
    ("Q31", ">"),
    ("shift", ">"),
    ("zp in", ">"),
    ("zp out", ">"),
    ("clamp", "<"),
    ("MACs", ">"),
    ("promise", "<"),
)


def inspection_lines(inspection: Inspection) -> Iterator[Line]:
    """The model at a glance and one row per operator."""
    model = inspection.model
    yield Line(f"{model.path or 'model'}: {model.size:,} bytes, SHA-256 {model.sha256}", "strong")
    yield Line(counts_text(inspection))
    for kind, indices in (("input", inspection.inputs), ("output", inspection.outputs)):
        for index in indices:
            yield Line(f"{kind} {tensor_text(inspection, index)}")
    yield from table(OPERATOR_COLUMNS, (operator_row(inspection, operator) for operator in inspection.operators))
    if inspection.unsupported:
        yield Line(f"{len(inspection.unsupported)} not supported under {inspection.profile}:", "warning")
        for operator in inspection.unsupported:
            yield Line(f"  {operator.index} {operator.op}: {operator.reason}", "warning")


def counts_text(inspection: Inspection) -> str:
    """How many operators, tensors, bytes of constants and multiply-accumulates, and the profile."""
    constants = sum(t.bytes for t in inspection.tensors)
    return (
        f"{counted(len(inspection.operators), 'operator')}, {counted(len(inspection.tensors), 'tensor')}, "
        f"{constants:,} bytes of constants, {inspection.macs:,} MACs; profile {inspection.profile}"
        + (f"; {inspection.subgraphs} subgraphs, the first is shown" if inspection.subgraphs > 1 else "")
    )


def operator_row(inspection: Inspection, operator: OperatorFacts) -> list[str]:
    """An operator, its result, and the constants it was prepared with."""
    outputs = [t for t in operator.outputs if 0 <= t < len(inspection.tensors)]
    output = inspection.tensors[outputs[0]] if outputs else None
    first = next((t for t in operator.inputs if 0 <= t < len(inspection.tensors)), None)
    source = inspection.tensors[first] if first is not None else None
    stages = operator.constants.stages if operator.constants else ()
    return [
        str(operator.index),
        operator.op,
        (f"{output.type} {list(output.shape)}" if output else ""),
        ("\n".join(span(stage.real) for stage in stages) or ("unsupported" if operator.reason else "")),
        ("\n".join(span(stage.mantissa) for stage in stages)),
        ("\n".join(span(stage.shift) for stage in stages)),
        span(source.zero_point) if source else "",
        span(output.zero_point) if output else "",
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
            yield f"  {kind} {position}: " + (tensor_text(inspection, tensor) if tensor >= 0 else "absent")
    if operator.options:
        yield "  options: " + ", ".join(f"{name} {value}" for name, value in operator.options)
    if operator.promise is not None:
        why = f": {operator.promise.reason}" if operator.promise.reason else ""
        yield f"  promise: {operator.promise}{why}"
    if operator.reason:
        yield f"  not supported under {inspection.profile}: {operator.reason}"
    elif operator.constants is None:
        yield "  bound when the model runs: its shapes depend on computed values"
    else:
        for stage in operator.constants.stages:
            yield f"  stage {stage_text(stage)}"
            if len(stage.real) > 1:
                for channel in range(len(stage.real)):
                    yield f"    {stage_text(stage, channel)}"
        for name, value in operator.constants.scalars:
            yield f"  {name} {value}"


def tensor_text(inspection: Inspection, index: int) -> str:
    """A tensor by index and name: type, shape, scale and zero point, and whether it is stored."""
    if not 0 <= index < len(inspection.tensors):
        return f"tensor {index} (there is none)"
    tensor = inspection.tensors[index]
    text = f"tensor {index} {quoted(tensor.name)} {tensor.type} {list(tensor.shape)}"
    if tensor.signature is not None and tensor.signature != tensor.shape:
        text += f" signature {list(tensor.signature)}"
    if tensor.scale:
        text += f", scale {span(tensor.scale)}, zero point {span(tensor.zero_point)}"
    return text + (f" ({tensor.kind})" if tensor.kind in ("constant", "variable") else "")
