"""Ranges of activations, by the order that a recipe names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tflq.quantization.observe import Observations, Progress, observe
from tflq.quantization.observers import Histogram, Kept, Observer
from tflq.quantization.params import Params, Range
from tflq.quantization.ranging.choosing import Chooser
from tflq.quantization.ranging.orders import layer_by_layer, online
from tflq.quantization.runner import Sample
from tflq.quantization.scheme import Scheme, Slot
from tflq.quantization.search.choices import Order
from tflq.quantization.search.methods import Ranging


def activation_ranges(
    scheme: Scheme, samples: Iterable[Sample], ranging: Ranging, weights: Mapping[Slot, Params],
    progress: Progress | None = None,
) -> dict[int, Range]:  # fmt: skip
    """The range of each tensor that a scheme wants observed; tensors that share a scale get the same.

    `samples` are iterated once, twice with two passes, once for every group of tensors layer by layer.
    """
    chooser = Chooser(scheme, ranging, weights)
    if not chooser.groups:
        return {}
    if ranging.order is Order.LAYER_BY_LAYER:
        return layer_by_layer(chooser, samples, progress)
    if ranging.order is Order.ONLINE:
        return online(chooser, samples, progress)
    model = (scheme.model if ranging.order is Order.FLOAT else chooser.weighted).model
    seen = observe(model, samples, chooser.begin(), progress)
    starts = {group: chooser.start(group, seen) for group in chooser.groups}
    if ranging.two_passes and ranging.activations is not None:
        again = {t: _within(seen.of[t], starts[group]) for group, tensors in chooser.groups.items() for t in tensors}
        seen = observe(model, samples, Observations(again), progress)
    found = {group: chooser.range(group, seen, starts[group]) for group in chooser.groups}
    return {t: found[group] for group, tensors in chooser.groups.items() for t in tensors}


def _within(first: tuple[Observer, ...], found: Range) -> tuple[Observer, ...]:
    """Observers of a second pass, whose bins lie within the range that the first pass found."""
    return (Histogram.within(found), *(Kept(limit=kept.limit) for kept in first if isinstance(kept, Kept)))
