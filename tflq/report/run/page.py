"""`tflq run` as a page: the outputs, and what every tensor held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.escaping import shown
from tflq.kernels.exactness import Exactness
from tflq.report.blocks import Bar
from tflq.report.graph.activations import activation_colourings, activation_figures, tensor_figures
from tflq.report.graph.standard import ModelView, graph_section, memory_section
from tflq.report.html.page import page
from tflq.report.html.parts import bars, code, details, section, side_by_side, table
from tflq.report.numbers import counted
from tflq.verification.results import InputFacts

Array = NDArray[Any]

#: Elements of an output that are drawn one by one, as the scores of a classifier are; and those that are listed.
_SCORES, _LISTED = 64, 1024


def run_page(
    view: ModelView, profile: str, inputs: InputFacts, values: Mapping[int, Array], promises: Mapping[int, Exactness]
) -> str:
    """The page of one run: `values` are every tensor of the first sample by index, `promises` those of the outputs."""
    inspection = view.inspection
    outputs = tuple(dict.fromkeys(t for t in inspection.outputs if t in values))
    rows = [
        [
            str(t),
            shown(inspection.tensors[t].name),
            f"{inspection.tensors[t].type} {list(values[t].shape)}",
            str(promises[t]),
        ]
        for t in outputs
    ]
    seed = "" if inputs.seed is None else f", seed {inputs.seed}"
    what = f"{counted(len(outputs), 'output')} of {counted(inputs.samples, 'sample')}"
    return page(
        "run",
        f"{what}, computed under {profile}",
        section(
            "outputs",
            "Outputs of the first sample",
            table((("tensor", ">"), ("name", "<"), ("type", "<"), ("promise", "<")), rows),
            *(_scores(inspection.tensors[t].name, values[t]) for t in outputs),
            side_by_side(*tensor_figures(inspection, outputs, values)),
        ),
        graph_section(
            view, activation_colourings(inspection, values), lambda index: activation_figures(inspection, index, values)
        ),
        section(
            "inputs", "Inputs of the first sample", side_by_side(*tensor_figures(inspection, inspection.inputs, values))
        ),
        memory_section(view.model),
        title=f"{inspection.model.path or 'model'}: tflq run",
        facts=[code(inspection.model.path or "model"), f"inputs: {inputs.source}{seed}"],
    )


def _scores(name: str, value: Array) -> object:
    """The elements of a small output: bars where there are few, and none is below 0; else a list."""
    flat = value.reshape(-1)
    if flat.dtype.kind not in "iuf" or not 1 < flat.size <= _LISTED:
        return ""
    if flat.size <= _SCORES and np.isfinite(flat).all():
        low = min(0.0, float(flat.min()))
        drawn = [
            Bar(str(i), float(v) - low, f"{v:.6g}" if flat.dtype.kind == "f" else str(v)) for i, v in enumerate(flat)
        ]
        return bars("element", f"value of {shown(name)}" + (f", from {low:g}" if low else ""), drawn)
    return details(f"{counted(flat.size, 'element')} of {shown(name)}", " ".join(map(str, flat.tolist())))
