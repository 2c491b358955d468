"""The report of `tflq inspect`: the model, its operators, their constants.

The reports of `tflq inspect`, and the cards of models and interpreters.

An inspection as a document: `schemas/inspect.schema.json`.

The report and the document of a package: its sections, and the models among them in brief.

The report of an inspection: the model, its operators with the constants they were prepared with, one in full.

The report of `tflq inspect --overflow`: the width that each accumulator needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from tflq.comparison.inspection.operators import Inspection, OperatorFacts, SumBound
from tflq.comparison.inspection.prepared import Constants
from tflq.engine.api.files import ModelFacts, Package, PackageSection
from tflq.face.report.blocks import (
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
    MemoryChart,
    Next,
    OnPage,
    OperatorBlock,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.models import (
    InspectDocument,
    OverflowDocument,
    OverflowDocumentRow,
    PackageDocument,
    SectionDocument,
)
from tflq.face.report.wording import bytes_text, counted, short, span, stage_text
from tflq.model.ir.signatures import place_in
from tflq.texts import quoted


def inspect_document(inspection: Inspection) -> InspectDocument:
    """Return the document of an inspection: `schemas/inspect.schema.json`."""
    return filled(InspectDocument, inspection)


_COLUMNS = (("#", ">"), ("name", "="), ("kind", "<"), ("bytes", ">"), ("contents", "<"))


def package_report(package: Package, models: Mapping[int, Inspection] | None = None) -> Report:
    """Build the report of a package; `models` holds the inspection of each model by its section's number."""
    found = models or {}
    text = f"{package.format}, {counted(len(package.sections), 'section')}, {bytes_text(package.size)}"
    blocks: list[Block] = [Headline(text, "strong", subject=package.path or "package")]
    blocks += [FactLine(f"{key}: {value}") for key, value in package.entries.items()]
    blocks.append(TableBlock(_COLUMNS, [_row(section, found) for section in package.sections]))
    place = package.path or "FILE"
    blocks.append(Next([f"tflq inspect {quote(f'{place}:{section.name}')}" for section in package.models]))
    names = ", ".join(section.name for section in package.sections)
    blocks.append(Brief(names, "Next: .sections, .model(name)", f"{place}: {text}"))
    return Report("inspect", blocks, title=f"{place}: tflq inspect")


def _row(section: PackageSection, models: Mapping[int, Inspection]) -> list[str]:
    inspection = models.get(section.number)
    contents = ", ".join(f"{key} {value}" for key, value in section.items.items())
    if inspection is not None:
        contents = f"{counted(len(inspection.operators), 'operator')}, {short(inspection.macs)} MACs"
        refused = len(inspection.unsupported)
        contents += f", {refused} not supported under {inspection.profile}" if refused else ""
    return [str(section.number), section.name, section.kind, f"{section.size:,}", contents]


def package_document(package: Package, models: Mapping[int, Inspection]) -> PackageDocument:
    """Return the document of a package: `schemas/package.schema.json`."""
    sections = [filled(SectionDocument, section, model=models.get(section.number)) for section in package.sections]
    return filled(PackageDocument, package, sections=sections)


_REPORT_COLUMNS = (
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


#: Subgraphs that operators run.
_INNER = (("subgraph", ">"), ("name", "<"), ("operators", ">"), ("MACs", ">"), ("run by", "<"))
#: Operators with the most multiply-accumulates that a page charts.
_LARGEST = 20
#: Refused operators that a card names.
_NAMED = 4


def inspect_report(inspection: Inspection, focus: int | None = None, portable: tuple[int, int] | None = None) -> Report:
    """Build the report of a model; a page shows operator `focus` at the start.

    `portable` are the numbers of integer operators that break no rule of portable models, and of all of them.
    """
    model = inspection.model
    size = f" {size_text(model)}"
    title = f"{model.path or 'model'}: tflq inspect"
    return Report(
        "inspect",
        list(_blocks(inspection, focus, portable)),
        about=(CodeBlock(model.path or "model"), size),
        title=title,
    )


def size_text(model: ModelFacts) -> str:
    """Return the size and the SHA-256 of a file, which is not computed for a large one."""
    return f"{model.size:,} bytes, SHA-256 {'not computed (--json has it)' if model.is_large else model.sha256}"


def operator_report(inspection: Inspection, index: int) -> Report:
    """Build the report of one operator with all its constants."""
    operator = inspection.operators[index]
    text = f"operator {operator.index} {operator.op}, version {operator.version}, {operator.macs:,} MACs"
    return Report("inspect", [Headline(text, ""), Listing(list(_operator_texts(inspection, operator)))])


def _blocks(inspection: Inspection, focus: int | None, portable: tuple[int, int] | None) -> Iterator[Block]:
    model, refused = inspection.model, inspection.unsupported
    constants = bytes_text(sum(tensor.bytes for tensor in inspection.tensors))
    operators = counted(len(inspection.operators), "operator")
    headline = f"{operators}, {short(inspection.macs)} MACs, {constants} of constants"
    yield Headline(
        size_text(model), "warning" if refused else "strong", subject=model.path or "model", headline=headline
    )
    yield _brief(inspection)
    rows = [_report_row(inspection, operator) for operator in inspection.operators]
    for one in inspection.every:
        yield from _report_signature(one)
    if portable is not None and portable[1]:
        kept, every = portable
        rest = "" if kept == every else f"; the others: `tflq prove {quote(model.path or 'MODEL')} --all`"
        many = f"{kept} of {counted(every, 'integer operator')} {'is' if kept == 1 else 'are'}"
        yield FactLine(f"{many} the same on every runtime for certain{rest}")
    yield InText([Text("one operator with its options and all channels: --op N", "faint")])
    if refused:
        head = InText([Text(f"{len(refused)} not supported under {inspection.profile}:", "warning")])
        reasons = Listing([f"{o.index} {o.op}: {o.reason}" for o in refused], "warning")
        yield Section("refused", f"Not supported under {inspection.profile}", [head, reasons])
    table = TableBlock(_REPORT_COLUMNS, rows, fold=f"{operators} with the constants they were prepared with")
    yield OnPage(
        lambda _view: [
            Graph(focus=focus),
            Section("operators", "Operators", [_macs(inspection), table]),
            MemoryChart(),
            Next([f"tflq verify {quote(model.path or 'MODEL')}"]),
        ]
    )


def _report_signature(inspection: Inspection) -> Iterator[Block]:
    """Yield what is known of one signature: counts, inputs, outputs, operators, and the subgraphs that these run."""
    if inspection.name:
        yield Text(f"{inspection.name} (subgraph {inspection.subgraph})", "strong")
    yield FactLine(counts_text(inspection))
    for kind, indices in (("input", inspection.inputs), ("output", inspection.outputs)):
        yield from (FactLine(f"{kind} {tensor_text(inspection, index)}") for index in indices)
    yield InText(
        [TableBlock(_REPORT_COLUMNS, [_report_row(inspection, operator) for operator in inspection.operators])]
    )
    rows: list[list[Inline]] = [
        [str(one.subgraph), one.name, str(len(one.operators)), f"{one.macs:,}", ", ".join(one.callers)]
        for one in inspection.inner
    ]
    if rows:
        yield TableBlock(_INNER, rows)


def _brief(inspection: Inspection) -> Brief:
    edges = (("input", inspection.inputs), ("output", inspection.outputs))
    then = "Next: .operators, .tensors"
    if inspection.unsupported:
        named = ", ".join(f"{o.index} {o.op}" for o in inspection.unsupported[:_NAMED])
        then = f"not supported: {named}; .unsupported lists the reasons"
    return Brief(
        "; ".join(f"{kind} {tensor_text(inspection, i)}" for kind, tensors in edges for i in tensors[:1]),
        then,
        f"{inspection.model.path or 'model'}: {counts_text(inspection)}",
    )


def _macs(inspection: Inspection) -> Bars:
    largest = sorted((o for o in inspection.operators if o.macs), key=lambda o: -o.macs)[:_LARGEST]
    bars = [
        Bar(OperatorBlock(o.index, o.op), o.macs, f"{short(o.macs)} ({o.macs / inspection.macs:.1%})") for o in largest
    ]
    return Bars("operator", "multiply-accumulates", bars)


def counts_text(inspection: Inspection) -> str:
    """Return the numbers of operators, tensors, bytes of constants and multiply-accumulates, and the profile."""
    constants = sum(t.bytes for t in inspection.tensors)
    return (
        f"{counted(len(inspection.operators), 'operator')}, {counted(len(inspection.tensors), 'tensor')}, "
        f"{constants:,} bytes of constants, {inspection.macs:,} MACs; profile {inspection.profile}"
        + ("; MACs of subgraphs that operators run count once for each operator" if inspection.inner else "")
    )


def _report_row(inspection: Inspection, operator: OperatorFacts) -> list[Inline]:
    """Return an operator, its result, and the constants it was prepared with."""
    outputs = [t for t in operator.outputs if 0 <= t < len(inspection.tensors)]
    output = inspection.tensors[outputs[0]] if outputs else None
    first = next((t for t in operator.inputs if 0 <= t < len(inspection.tensors)), None)
    source = inspection.tensors[first] if first is not None else None
    stages = operator.constants.stages if operator.constants else ()
    return [
        str(operator.index),
        OperatorBlock(operator.index, operator.op),
        f"{output.type} {list(output.shape)}" if output else "",
        "\n".join(span(stage.real) for stage in stages) or ("unsupported" if operator.reason else ""),
        "\n".join(span(stage.mantissa) for stage in stages),
        "\n".join(span(stage.shift) for stage in stages),
        span(source.zero_point) if source else "",
        span(output.zero_point) if output else "",
        _clamp(operator.constants),
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


def _operator_texts(inspection: Inspection, operator: OperatorFacts) -> Iterator[str]:
    for kind, tensors in (("input", operator.inputs), ("output", operator.outputs)):
        for position, tensor in enumerate(tensors):
            yield f"{kind} {position}: " + (tensor_text(inspection, tensor) if tensor >= 0 else "absent")
    if operator.options:
        yield "options: " + ", ".join(f"{name} {value}" for name, value in operator.options)
    if operator.promise is not None:
        why = f": {operator.promise.reason}" if operator.promise.reason else ""
        yield f"promise: {operator.promise}{why}"
    if operator.reason:
        yield f"not supported under {inspection.profile}: {operator.reason}"
    elif operator.constants is None:
        yield "bound when the model runs: its shapes depend on computed values"
    else:
        for stage in operator.constants.stages:
            yield f"stage {stage_text(stage)}"
            if len(stage.real) > 1:
                for channel in range(len(stage.real)):
                    yield f"  {stage_text(stage, channel)}"
        for name, value in operator.constants.scalars:
            yield f"{name} {value}"


def tensor_text(inspection: Inspection, index: int) -> str:
    """Return a tensor's index, name, type, shape, scale, zero point, and its kind if it is stored."""
    if not 0 <= index < len(inspection.tensors):
        return f"tensor {index} (there is none)"
    tensor = inspection.tensors[index]
    text = f"tensor {index} {quoted(tensor.name)} {tensor.type} {list(tensor.shape)}"
    if tensor.signature is not None and tensor.signature != tensor.shape:
        text += f" signature {list(tensor.signature)}"
    if tensor.scale:
        text += f", scale {span(tensor.scale)}, zero point {span(tensor.zero_point)}"
    return text + (f" ({tensor.kind})" if tensor.kind in ("constant", "variable") else "")


_OVERFLOW_COLUMNS = (
    ("#", ">"),
    ("operator", "<"),
    ("lowest", ">"),
    ("highest", ">"),
    ("channel", ">"),
    ("bits", ">"),
    ("", "<"),
)


def overflow_report(bounds: Sequence[SumBound], bits: int) -> Report:
    """Build the report: do accumulators of `bits` hold every sum, and the bound of each operator."""
    rows = [_overflow_row(bound, bits) for bound in bounds]
    return Report("inspect", [_verdict(bounds, bits), TableBlock(_OVERFLOW_COLUMNS, rows)])


def _verdict(bounds: Sequence[SumBound], bits: int) -> Headline:
    beyond = [bound for bound in bounds if bound.bits > bits]
    if not beyond:
        text = f"{bits} bits hold every accumulator of {len(bounds)} operators, in any order of summation"
        return Headline(text, "good")
    named = ", ".join(f"{place_in(bound.signature, bound.index)} {bound.op}" for bound in beyond)
    return Headline(f"{len(beyond)} of {len(bounds)} operators can overflow {bits} bits: {named}", "bad")


def _overflow_row(bound: SumBound, bits: int) -> list[str]:
    numbers = (f"{bound.low:,}", f"{bound.high:,}", str(bound.channel), str(bound.bits))
    return [place_in(bound.signature, bound.index), bound.op, *numbers, "overflows" if bound.bits > bits else ""]


def overflow_document(model: str, profile: str, bounds: Sequence[SumBound], bits: int) -> OverflowDocument:
    """Return the document: `schemas/overflow.schema.json`."""
    rows = [filled(OverflowDocumentRow, bound, overflows=bound.bits > bits) for bound in bounds]
    return filled(OverflowDocument, None, model=model, profile=profile, bits=bits, operators=rows)
