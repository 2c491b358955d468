"""The report of `tflq run`: the inputs, each output with its promise, the likeliest classes of classifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tflq.api.subject import ModelFacts
from tflq.escaping import shown
from tflq.ir import TensorSpec
from tflq.kernels.exactness import Exactness
from tflq.report.blocks import (
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
)
from tflq.report.documents import RUN, model_document, promise_document
from tflq.report.numbers import counted
from tflq.verification.results import InputFacts

if TYPE_CHECKING:
    from tflq.report.graph.standard import ModelView

Array = NDArray[Any]

#: Largest array whose elements text shows, and number of classes that it lists.
_SHOWN, _TOP = 10, 5
#: Samples whose outputs text lists.
_SAMPLES = 10
#: Elements of an output that a page draws one by one, and those that it lists.
_SCORES, _LISTED = 64, 1024


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """One model's outputs by name, with their promises and a line about the classes of each classifier.

    `values` are all tensors of the first sample by index, and `promised` the promises of its outputs, if they were kept
    for a page.
    """

    facts: ModelFacts
    profile: str
    inputs: InputFacts
    arrays: Mapping[str, Array]
    promises: Mapping[str, Exactness]
    tops: Sequence[str] = ()
    values: Mapping[int, Array] = field(default_factory=dict)
    promised: Mapping[int, Exactness] = field(default_factory=dict)


def run_report(ran: Ran, output: str) -> Report:
    """Build the report of a run whose arrays were written to `output`, if anywhere."""
    path = ran.facts.path or "model"
    what = f"{counted(len(ran.promised), 'output')} of {counted(ran.inputs.samples, 'sample')}"
    headline = f"{what}, computed under {ran.profile}"
    return Report("run", list(_blocks(ran, output)), Code(path), f"{path}: tflq run", headline)


def _blocks(ran: Ran, output: str) -> Iterator[Block]:
    samples = ran.inputs.samples
    yield from (Text(top, "strong") for top in ran.tops if _is_listed(top.partition(" of ")[2], samples))
    seed = "" if ran.inputs.seed is None else f", seed {ran.inputs.seed}"
    yield Fact(f"inputs: {ran.inputs.source}{seed}; profile {ran.profile}")
    for name, value in ran.arrays.items():
        if not _is_listed(name, samples):
            continue
        values = "" if value.size > _SHOWN else f" = {value.ravel().tolist()}"
        text = f"{shown(name)}: {value.dtype} {list(value.shape)}, {ran.promises[name]}{values}"
        yield InText([Text(text)])
    if samples > _SAMPLES:
        where = "" if output else "; -o FILE.npz writes all of them"
        yield Text(f"not listed: {counted(samples - _SAMPLES, 'more sample')}{where}")
    if output:
        yield Fact(f"written to {output}")
    yield OnPage(lambda view: _page(view, ran))


def _is_listed(name: str, samples: int) -> bool:
    """Return whether text lists an array: those of the first samples, whose names begin with `s` and the sample."""
    return samples <= _SAMPLES or name.startswith(tuple(f"s{k}_" for k in range(_SAMPLES)))


def top_text(name: str, spec: TensorSpec, value: Array, labels: Sequence[str]) -> str:
    """Return the classes with the largest values of an output [1, N], in real units; "" for other outputs."""
    if value.size < 2 or value.size != value.shape[-1] or value.dtype.kind not in "iuf":
        return ""
    real, q = value.ravel().astype(np.float64), spec.quantization
    if q is not None and len(q.scale) == 1 and value.dtype.kind != "f":
        real = (real - int(q.zero_point[0] if len(q.zero_point) else 0)) * float(q.scale[0])
    best = np.argsort(-real, kind="stable")[:_TOP]
    texts = (f"{labels[k] if k < len(labels) else k} {real[k]:.4g}" for k in map(int, best))
    return f"top {len(best)} of {shown(name)}: {', '.join(texts)}"


def _page(view: ModelView, ran: Ran) -> Iterator[Block]:
    from tflq.report.graph.activations import activation_colourings, tensor_figures

    inspection, values = view.inspection, ran.values
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
