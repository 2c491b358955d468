"""The comparison of an integer model with the float model that it was built from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tflq.model.ir import Model
from tflq.progress import Progress
from tflq.quantization.build.build import Built
from tflq.quantization.judge.comparison import Comparison, compare_models
from tflq.quantization.judge.truths import Truth
from tflq.quantization.refine.equalization import EQUALIZED
from tflq.quantization.runner import Sample


def compare(
    source: Model,
    built: Built,
    result: Model,
    samples: Iterable[Sample],
    labels: Sequence[Truth] | None,
    progress: Progress | None,
    origins: Sequence[int] | None = None,
) -> Comparison:
    """Compare with the float model; if channels were equalized, compare inner tensors with the equalized model.

    Equalizing changes no bit of the outputs, so one run gives all results unless operators of the float model were
    dissolved, or loops made integer. `origins` are the prepared operators' indices in `source`, by those in the model
    that was prepared.
    """
    floats = built.assignment.scheme.model
    if not any((tensor.name or "").endswith(EQUALIZED) for tensor in floats.graph.tensors):
        return compare_models(source, result, samples, labels, progress)
    inside = compare_models(floats.model, result, samples, labels, progress)
    indices = floats.origins if origins is None else [origins[index] for index in floats.origins]
    tensors = tuple(replace(t, index=indices[t.index]) for t in inside.tensors)
    if not floats.ranges and len(source.subgraphs) == 1:  # whose loops may be integer in `floats`
        return replace(inside, tensors=tensors)
    return replace(compare_models(source, result, samples, labels), tensors=tensors, unmatched=inside.unmatched)
