"""The report of `tflq run`: the inputs, each output with its promise, the likeliest classes of classifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Brief,
    CodeBlock,
    FactLine,
    Figures,
    Fold,
    Graph,
    Headline,
    InText,
    MemoryChart,
    OnPage,
    Report,
    Section,
    TableBlock,
    Text,
)
from tflq.face.report.documents.filling import filled
from tflq.face.report.documents.models import ArrayDocument, RunDocument
from tflq.face.report.wording import counted
from tflq.texts import shown
from tflq.typing import Array
from tflq.verbs.run import Ran, Top, top

if TYPE_CHECKING:
    from tflq.face.report.graph.drawing import ModelView


#: Largest array whose elements text shows.
_SHOWN = 10
#: Samples whose outputs text lists; more are summarized.
_SAMPLES = 10
#: Elements of an output that a page draws one by one, and those that it lists.
_SCORES, _LISTED = 64, 1024


def run_report(ran: Ran, output: str) -> Report:
    """Build the report of a run whose arrays were written to `output`, if anywhere."""
    path = ran.facts.path or "model"
    what = f"{counted(len(ran.promised), 'output')} of {counted(ran.inputs.samples, 'sample')}"
    headline = f"{what}, computed under {ran.profile}"
    return Report("run", list(_blocks(ran, output)), CodeBlock(path), f"{path}: tflq run", headline)


def run_card(ran: Ran) -> Report:
    """Build the report of a run for a console or a notebook."""
    report = run_report(ran, "")
    arrays = f"{counted(len(ran.arrays), 'array')} of {counted(ran.inputs.samples, 'sample')}, under {ran.profile}"
    text = ran.tops[0].text if ran.tops else arrays
    first = next(iter(ran.arrays.items()), None)
    where = "no outputs" if first is None else f"{shown(first[0])}: {first[1].dtype} {list(first[1].shape)}"
    brief = Brief(where, "Next: .arrays by name, .promises", f"{ran.facts.path or 'model'}: {text}")
    bars = [b for name, value in islice(ran.arrays.items(), 1) for b in _scores(name, value)]
    return replace(report, blocks=[*report.blocks, brief, *bars])


def _blocks(ran: Ran, output: str) -> Iterator[Block]:
    yield from (Text(top.text, "strong") for top in ran.tops[:_SAMPLES])
    if len(ran.tops) > _SAMPLES:
        yield Text(_likeliest(ran.tops), "strong")
    seed = "" if ran.inputs.seed is None else f", seed {ran.inputs.seed}"
    yield FactLine(f"inputs: {ran.inputs.source}{seed}; profile {ran.profile}")
    outputs = max(1, len(ran.arrays) // max(1, ran.inputs.samples))
    for name, value in islice(ran.arrays.items(), outputs * _SAMPLES):
        values = "" if value.size > _SHOWN else f" = {value.ravel().tolist()}"
        text = f"{shown(name)}: {value.dtype} {list(value.shape)}, {ran.promises[name]}{values}"
        yield InText([Text(text)])
    if ran.inputs.samples > _SAMPLES:
        where = "" if output else "; -o FILE.npz writes all of them"
        yield Text(f"not listed: {counted(ran.inputs.samples - _SAMPLES, 'more sample')}{where}")
    if output:
        yield FactLine(f"written to {output}")
    yield OnPage(lambda view: _page(view, ran))


def _likeliest(tops: Sequence[Top]) -> str:
    """Return how often each class is the likeliest, the most frequent first."""
    counts = Counter(one.label for one in tops).most_common()
    texts = [f"{label} in {count:,}" for label, count in counts[:_SAMPLES]]
    more = f", {len(counts) - _SAMPLES} more classes" if len(counts) > _SAMPLES else ""
    return f"likeliest of {counted(len(tops), 'output')}: {', '.join(texts)}{more}"


def _page(view: ModelView, ran: Ran) -> Iterator[Block]:
    from tflq.face.report.graph.colouring import activation_colourings, tensor_figures

    inspection, values = view.inspection, ran.values
    yield from _top_verdict(view, ran)
    outputs = tuple(ran.promised)
    tensors = [inspection.tensors[t] for t in outputs]
    rows = [
        [str(t), shown(tensor.name), f"{tensor.type} {list(values[t].shape)}", str(ran.promised[t])]
        for t, tensor in zip(outputs, tensors, strict=True)
    ]
    columns = (("tensor", ">"), ("name", "<"), ("type", "<"), ("promise", "<"))
    scores = [block for t, tensor in zip(outputs, tensors, strict=True) for block in _scores(tensor.name, values[t])]
    drawn = Figures(tensor_figures(inspection, outputs, values))
    yield Section("outputs", "Outputs of the first sample", [TableBlock(columns, rows), *scores, drawn])
    yield Graph(
        activation_colourings(inspection, values),
        lambda index: [Figures(tensor_figures(inspection, inspection.operators[index].outputs, values))],
    )
    inputs = Figures(tensor_figures(inspection, inspection.inputs, values))
    yield Section("inputs", "Inputs of the first sample", [inputs])
    yield MemoryChart()


#: Operators whose results are scores of classes.
_SCORING = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")


def _top_verdict(view: ModelView, ran: Ran) -> Iterator[Headline]:
    """Yield the likeliest class as the page's headline, if classes were asked for or the model computes scores."""
    tops = list(ran.tops)
    if not tops and ran.inputs.samples == 1:
        scored = {t for o in view.inspection.operators if o.op in _SCORING for t in o.outputs}
        specs = view.model.subgraphs[view.inspection.subgraph].tensors
        drawn = (top(specs[t].name or "", specs[t], ran.values[t], ()) for t in ran.promised if t in scored)
        tops = [one for one in drawn if one is not None]
    if len(tops) > 1 and len(tops) == ran.inputs.samples:
        yield Headline(_likeliest(tops))
    elif tops:
        yield Headline(f"top-1: {tops[0].label} ({tops[0].value}), computed under {ran.profile}")


def _scores(name: str, value: Array) -> Iterator[Block]:
    """Yield the elements of a small output: as bars if they are few and finite, else as a list."""
    flat = value.reshape(-1)
    if flat.dtype.kind not in "iuf" or not 1 < flat.size <= _LISTED:
        return
    if flat.size <= _SCORES and np.isfinite(flat).all():
        low = min(0.0, float(flat.min()))
        texts = [f"{v:.6g}" if flat.dtype.kind == "f" else str(v) for v in flat]
        rows = [Bar(str(i), float(v) - low, text) for i, (v, text) in enumerate(zip(flat, texts, strict=True))]
        yield Bars("element", f"value of {shown(name)}" + (f", from {low:g}" if low else ""), rows)
    else:
        yield Fold(f"{counted(flat.size, 'element')} of {shown(name)}", [Text(" ".join(map(str, flat.tolist())))])


def run_document(ran: Ran, output: str = "") -> RunDocument:
    """Return the document: `schemas/run.schema.json`. `output` is the file with the arrays."""
    arrays = [
        filled(ArrayDocument, value, name=name, dtype=str(value.dtype), promise=ran.promises[name])
        for name, value in ran.arrays.items()
    ]
    return filled(RunDocument, ran, model=ran.facts, file=output, arrays=arrays)
