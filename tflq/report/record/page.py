"""`tflq record` as a page: which runtime ran what, and what it made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from shlex import quote
from typing import Any

from numpy.typing import NDArray

from tflq.report.graph.activations import activation_colourings, activation_figures, tensor_figures
from tflq.report.graph.standard import ModelView, graph_section
from tflq.report.html.page import page
from tflq.report.html.parts import code, facts, next_section, note, section, side_by_side
from tflq.report.numbers import counted
from tflq.report.runtimes import runtime_text
from tflq.verification.golden import Golden

Array = NDArray[Any]


def record_page(view: ModelView, golden: Golden, path: str) -> str:
    """The page of a recording that is at `path`; the first sample is drawn."""
    inspection = view.inspection
    values = _values(view, golden)
    outputs = tuple(dict.fromkeys(inspection.outputs))
    runtime = golden.runtime
    described: Mapping[str, Any] = asdict(runtime) if is_dataclass(runtime) else dict(runtime)
    what = "All tensors" if golden.tensors else "Outputs"
    colourings = activation_colourings(inspection, values) if golden.tensors else ()
    return page(
        "record",
        f"{what} of {counted(len(golden.observations), 'sample')} by {runtime_text(golden.runtime)}",
        section("notes", "Notes", *(note(text, "warning") for text in golden.notes)),
        next_section([f"tflq verify {quote(inspection.model.path or 'MODEL')} --golden {quote(path)}"]),
        section("outputs", "Outputs of the first sample", side_by_side(*tensor_figures(inspection, outputs, values))),
        graph_section(view, colourings, lambda index: activation_figures(inspection, index, values)),
        section(
            "inputs", "Inputs of the first sample", side_by_side(*tensor_figures(inspection, inspection.inputs, values))
        ),
        section("runtime", "Runtime", facts((name, str(value)) for name, value in described.items() if value != "")),
        title=f"{path}: tflq record",
        facts=[code(inspection.model.path or "model"), code(path), f"inputs: {golden.inputs.source}"],
    )


def _values(view: ModelView, golden: Golden) -> dict[int, Array]:
    """Values of the first sample by tensor index, as far as the runtime holds them."""
    if not golden.observations:
        return {}
    first = golden.observations[0]
    edges = view.model.subgraphs[0]
    known = [
        *zip(edges.inputs, first.inputs, strict=False),
        *zip(edges.outputs, first.outputs, strict=False),
        *first.tensors.items(),
    ]
    return {tensor: value for tensor, value in known if value is not None}
