"""The comparison of an integer model with the float model that it was built from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tflq.model.ir import Model
from tflq.progress import Progress
from tflq.quantization.build.build import Built
from tflq.quantization.judge.comparison import Comparison, compare_models
from tflq.quantization.judge.truths import Truth
from tflq.quantization.portable.forms.rewrite import Rewritten
from tflq.quantization.refine.equalization import EQUALIZED
from tflq.quantization.runner import Sample


def compare(
    reference: Model,
    form: Rewritten,
    built: Built,
    result: Model,
    samples: Iterable[Sample],
    labels: Sequence[Truth] | None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare with the float model; if channels were equalized, compare inner tensors with the equalized model.

    `reference` is the source, or its `form` that was quantized; operators are numbered as in the source. Equalizing
    changes no bit of the outputs, so one run gives all results unless operators of the float model were dissolved, or
    loops made integer.
    """
    floats = built.assignment.scheme.model
    if not any((tensor.name or "").endswith(EQUALIZED) for tensor in floats.graph.tensors):
        compared = compare_models(reference, result, samples, labels, progress)
        return compared.numbered(form.origins) if reference is form.model else compared
    inside = compare_models(floats.model, result, samples, labels, progress)
    inside = inside.numbered([form.origins[index] for index in floats.origins])
    if not floats.ranges and len(reference.subgraphs) == 1:  # whose loops may be integer in `floats`
        return inside
    whole = compare_models(reference, result, samples, labels)
    return replace(whole, tensors=inside.tensors, unmatched=inside.unmatched)
