"""Known mistakes of devices, each defined once and tried on every operator to which it applies.

| module            | mistakes in                                                                                  |
|-------------------|----------------------------------------------------------------------------------------------|
| `requantization.py` | roundings, multipliers, shifts, channels' multipliers, widths of scaled values              |
| `constants.py`    | prepared constants: clamps, zero points, windows, tables, multipliers outside stages         |
| `tensors.py`      | the operator's own model: zero points, biases, filters, activations                          |
| `taps.py`         | taps of contractions: codes, zero points, accumulators that saturate                         |
| `channels.py`     | single channels and items: offsets, weights, biases, batches of which one item is computed    |
| `pairs_of_products.py` | pairs of products that saturate at 16 bits                                               |
| `raw_codes.py`    | codes taken for numbers; exponentials by a table                                              |
| `averages.py`     | means of windows and axes: quotients, counts, codes                                          |
| `floats.py`       | dequantize, float operator, quantize: precisions, quotients, roundings                        |
| `hybrids.py`      | float operators with narrow weights: groups that share a scale                                |
| `dynamic.py`      | the same: zero points and scales of rows and images that are quantized on the way             |
| `narrow_operands.py` | float operators: operands or weights of a narrower float type                              |
| `positions.py`    | resized images: which input pixel an output pixel copies                                      |
| `results.py`      | results of one sign only, clamps at other codes                                               |
| `orders.py`       | products of floats: orders and widths of sums, fused multiply-add                            |
| `layouts.py`      | memory: orders of axes, signedness of codes, padding that is stored                          |
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from tflq.diagnosis.mistakes.averages import mistaken_averages
from tflq.diagnosis.mistakes.changes import changes
from tflq.diagnosis.mistakes.channels import mistaken_channels, models_of_channels
from tflq.diagnosis.mistakes.constants import mistaken_constants
from tflq.diagnosis.mistakes.device import Device, Mistaken, Under, guard
from tflq.diagnosis.mistakes.dynamic import mistaken_dynamic_ranges
from tflq.diagnosis.mistakes.floats import mistaken_floats
from tflq.diagnosis.mistakes.hybrids import mistaken_hybrids
from tflq.diagnosis.mistakes.layouts import mistaken_layouts, reorderings
from tflq.diagnosis.mistakes.narrow_operands import mistaken_operands
from tflq.diagnosis.mistakes.orders import mistaken_orders
from tflq.diagnosis.mistakes.pairs_of_products import mistaken_pairs
from tflq.diagnosis.mistakes.positions import mistaken_positions
from tflq.diagnosis.mistakes.raw_codes import mistaken_codes
from tflq.diagnosis.mistakes.requantization import mistaken_profiles, mistaken_stages, stages_made
from tflq.diagnosis.mistakes.results import mistaken_results
from tflq.diagnosis.mistakes.taps import mistaken_taps, taps_together
from tflq.diagnosis.mistakes.tensors import mistaken_models
from tflq.diagnosis.mistakes.unchecked import unchecked
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile
from tflq.errors import TflqError

__all__ = ["Device", "changes", "mistakes", "readings", "readings_together", "reorderings"]


def mistakes(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield devices that compute as the profile except for one mistake, with the mistake's name.

    Their result at one place of an image depends only on the surroundings of that place, wherever the image ends.
    """
    sources: dict[str, Callable[[], Iterable[Mistaken]]] = {
        "tensors": lambda: _models(alone, profile),
        "stages": lambda: _profiles(alone, profile),
        "constants": lambda: _constants(alone, profile),
        "taps": lambda: mistaken_taps(alone, profile),
        "pairs of products": lambda: mistaken_pairs(alone, profile),
        "raw codes": lambda: mistaken_codes(alone),
        "averages": lambda: mistaken_averages(alone, profile),
        "floats": lambda: mistaken_floats(alone, profile),
        "orders of sums": lambda: mistaken_orders(alone, profile),
        "quantization on the way": lambda: mistaken_hybrids(alone, profile),
        "narrow operands": lambda: mistaken_operands(alone, profile),
        "dynamic ranges": lambda: mistaken_dynamic_ranges(alone, profile),
        "positions": lambda: mistaken_positions(alone, profile),
        "results": lambda: mistaken_results(alone, profile),
        "channels": lambda: mistaken_channels(alone, profile),
        "layouts": lambda: mistaken_layouts(alone, unchecked(profile)),
    }
    for source, found in sources.items():
        yield from guard(source, found)


def _models(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    for name, model in (*mistaken_models(alone.model), *models_of_channels(alone, profile)):
        yield name, Under(unchecked(profile), model)


def _profiles(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    for name, wrong in mistaken_profiles(profile, alone.model):
        yield name, Under(wrong)


def _constants(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    plan = alone.plan(profile)
    prepared = plan.steps[0].prepared
    if prepared is None:
        return
    for name, build in mistaken_constants(prepared.data, plan.steps[0].node):
        yield name, _of_data(profile, build)
    if stages_made(alone, profile) > 1:
        for name, build in mistaken_stages(prepared.data):
            yield name, _of_data(profile, build)


def readings(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield mistakes in taps and averages."""
    yield from mistaken_taps(alone, profile)
    yield from mistaken_averages(alone, profile)


def readings_together(alone: Part, profile: Profile, leading: Container[str]) -> Iterator[Mistaken]:
    """Yield two of them at once, one of which has a `leading` name."""
    yield from taps_together(alone, profile, leading)


def _of_data(profile: Profile, build: Callable[[], Any]) -> Device:
    """Return a device with prepared data from `build`, which is called when the device first runs."""
    data = cache(build)

    def device(alone: Part) -> Any:
        plan = alone.plan(profile)
        step = plan.steps[0]
        if step.prepared is None:
            raise TflqError("the operator is bound when it runs")
        return alone.run(replace(plan, steps=(replace(step, prepared=replace(step.prepared, data=data())),)))

    return device
