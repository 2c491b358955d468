"""Observe ranges of activations in the order that a recipe names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflq.progress import Progress
from tflq.quantization.params import Params, Range
from tflq.quantization.ranges.choice import Chooser
from tflq.quantization.ranges.observation import Observations
from tflq.quantization.ranges.observers import FirstSamples, Histogram, Observer
from tflq.quantization.ranges.orders import layer_by_layer, online
from tflq.quantization.ranges.watching import Watching
from tflq.quantization.recipe.ranging import Order, Ranging
from tflq.quantization.runner import Sample
from tflq.quantization.scheme.scheme import Scheme, Slot


def activation_ranges(
    scheme: Scheme,
    samples: Sequence[Sample],
    watching: Watching,
    ranging: Ranging,
    weights: Mapping[Slot, Params],
    progress: Progress | None = None,
) -> dict[int, Range]:
    """Return the range of each tensor that a scheme observes; tensors that share a scale get the same range.

    The samples run once unless `watching` has already seen them, twice with two passes, and once for every group of
    tensors layer by layer.
    """
    chooser = Chooser(scheme, ranging, weights)
    if not chooser.groups:
        return {}
    if ranging.order is Order.LAYER_BY_LAYER:
        return layer_by_layer(chooser, samples, progress)
    if ranging.order is Order.ONLINE:
        return online(chooser, samples, progress)
    model = scheme.model if ranging.order is Order.FLOAT else chooser.weighted
    observations = watching.observe(model, samples, chooser.begin(), progress)
    starts = {group: chooser.start(group, observations) for group in chooser.groups}
    if ranging.two_passes and ranging.activations is not None:
        again = {t: _within(observations.of[t], starts[g]) for g, tensors in chooser.groups.items() for t in tensors}
        observations = watching.observe(model, samples, Observations(again), progress)
    chosen = {group: chooser.range(group, observations, starts[group]) for group in chooser.groups}
    return {t: chosen[group] for group, tensors in chooser.groups.items() for t in tensors}


def _within(first: tuple[Observer, ...], start: Range) -> tuple[Observer, ...]:
    """Return observers for a second pass, whose bins lie within the range of the first pass."""
    again = (FirstSamples(limit=observer.limit) for observer in first if isinstance(observer, FirstSamples))
    return (Histogram.within(start), *again)
