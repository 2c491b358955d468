"""The report of `tflq run`: the inputs, each output with its promise, the likeliest classes of classifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tflq.comparison.verification.results import InputFacts
from tflq.engine.api.subject import ModelFacts
from tflq.engine.kernels.exactness import Exactness
from tflq.escaping import shown
from tflq.face.report.blocks import (
    Bar,
    Bars,
    Block,
    Code,
    Fact,
    Figures,
    Fold,
    Graph,
    InText,
    Memory,
    OnPage,
    Report,
    Section,
    Table,
    Text,
    Verdict,
)
from tflq.face.report.documents import RUN, model_document, promise_document
from tflq.face.report.numbers import counted
from tflq.model.ir import TensorSpec
from tflq.typing import Array

if TYPE_CHECKING:
    from tflq.face.report.graph.standard import ModelView


#: Largest array whose elements text shows, and number of classes that it lists.
_SHOWN, _TOP = 10, 5
#: Samples whose outputs text lists; more are summarized.
_SAMPLES = 10
#: Elements of an output that a page draws one by one, and those that it lists.
_SCORES, _LISTED = 64, 1024


@dataclass(frozen=True, slots=True)
class Top:
    """The likeliest class of an output with its value, and a line about the likeliest few."""

    label: str
    value: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """One model's outputs by name, with their promises and the likeliest classes of each classifier.

    `values` are all tensors of the first sample by index, and `promised` the promises of its outputs, if they were kept
    for a page.
    """

    facts: ModelFacts
    profile: str
    inputs: InputFacts
    arrays: Mapping[str, Array]
    promises: Mapping[str, Exactness]
    tops: Sequence[Top] = ()
    values: Mapping[int, Array] = field(default_factory=dict)
    promised: Mapping[int, Exactness] = field(default_factory=dict)


def run_report(ran: Ran, output: str) -> Report:
    """Build the report of a run whose arrays were written to `output`, if anywhere."""
    path = ran.facts.path or "model"
    what = f"{counted(len(ran.promised), 'output')} of {counted(ran.inputs.samples, 'sample')}"
    headline = f"{what}, computed under {ran.profile}"
    return Report("run", list(_blocks(ran, output)), Code(path), f"{path}: tflq run", headline)


def _blocks(ran: Ran, output: str) -> Iterator[Block]:
    yield from (Text(top.text, "strong") for top in ran.tops[:_SAMPLES])
    if len(ran.tops) > _SAMPLES:
        yield Text(_likeliest(ran.tops), "strong")
    seed = "" if ran.inputs.seed is None else f", seed {ran.inputs.seed}"
    yield Fact(f"inputs: {ran.inputs.source}{seed}; profile {ran.profile}")
    outputs = max(1, len(ran.arrays) // max(1, ran.inputs.samples))
    for name, value in islice(ran.arrays.items(), outputs * _SAMPLES):
        values = "" if value.size > _SHOWN else f" = {value.ravel().tolist()}"
        text = f"{shown(name)}: {value.dtype} {list(value.shape)}, {ran.promises[name]}{values}"
        yield InText([Text(text)])
    if ran.inputs.samples > _SAMPLES:
        where = "" if output else "; -o FILE.npz writes all of them"
        yield Text(f"not listed: {counted(ran.inputs.samples - _SAMPLES, 'more sample')}{where}")
    if output:
        yield Fact(f"written to {output}")
    yield OnPage(lambda view: _page(view, ran))


def top(name: str, spec: TensorSpec, value: Array, labels: Sequence[str]) -> Top | None:
    """Return the classes with the largest values of an output [1, N], in real units; None for other outputs."""
    if value.size < 2 or value.size != value.shape[-1] or value.dtype.kind not in "iuf":
        return None
    real, q = value.ravel().astype(np.float64), spec.quantization
    if q is not None and len(q.scale) == 1 and value.dtype.kind != "f":
        real = (real - int(q.zero_point[0] if len(q.zero_point) else 0)) * float(q.scale[0])
    best = np.argsort(-real, kind="stable")[:_TOP]
    names = [labels[k] if k < len(labels) else str(k) for k in map(int, best)]
    texts = (f"{label} {real[k]:.4g}" for label, k in zip(names, map(int, best), strict=True))
    return Top(names[0], f"{real[best[0]]:.4g}", f"top {len(best)} of {shown(name)}: {', '.join(texts)}")


def _likeliest(tops: Sequence[Top]) -> str:
    """Return how often each class is the likeliest, the most frequent first."""
    counts = Counter(one.label for one in tops).most_common()
    texts = [f"{label} in {count:,}" for label, count in counts[:_SAMPLES]]
    more = f", {len(counts) - _SAMPLES} more classes" if len(counts) > _SAMPLES else ""
    return f"likeliest of {counted(len(tops), 'output')}: {', '.join(texts)}{more}"


def _page(view: ModelView, ran: Ran) -> Iterator[Block]:
    from tflq.face.report.graph.activations import activation_colourings, tensor_figures

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
    yield Section("outputs", "Outputs of the first sample", [Table(columns, rows), *scores, drawn])
    yield Graph(
        activation_colourings(inspection, values),
        lambda index: [Figures(tensor_figures(inspection, inspection.operators[index].outputs, values))],
    )
    inputs = Figures(tensor_figures(inspection, inspection.inputs, values))
    yield Section("inputs", "Inputs of the first sample", [inputs])
    yield Memory()


#: Operators whose results are scores of classes.
_SCORING = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")


def _top_verdict(view: ModelView, ran: Ran) -> Iterator[Verdict]:
    """Yield the likeliest class as the page's headline, if classes were asked for or the model computes scores."""
    tops = list(ran.tops)
    if not tops and ran.inputs.samples == 1:
        scored = {t for o in view.inspection.operators if o.op in _SCORING for t in o.outputs}
        specs = view.model.subgraphs[view.inspection.subgraph].tensors
        drawn = (top(specs[t].name or "", specs[t], ran.values[t], ()) for t in ran.promised if t in scored)
        tops = [one for one in drawn if one is not None]
    if len(tops) > 1 and len(tops) == ran.inputs.samples:
        yield Verdict(_likeliest(tops))
    elif tops:
        yield Verdict(f"top-1: {tops[0].label} ({tops[0].value}), computed under {ran.profile}")


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


def run_document(ran: Ran, output: str) -> dict[str, Any]:
    """Return the document: `schemas/run.schema.json`. `output` is the file with the arrays."""
    return {
        "schema": RUN,
        "model": model_document(ran.facts),
        "profile": ran.profile,
        "inputs": asdict(ran.inputs),
        "file": output or None,
        "arrays": [
            {
                "name": name,
                "dtype": str(value.dtype),
                "shape": list(value.shape),
                "promise": promise_document(ran.promises[name]),
            }
            for name, value in ran.arrays.items()
        ],
    }
