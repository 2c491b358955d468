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
| `structure.py`    | other axes, orders of operands, blocks and equal elements, modes of padding, broadcasts       |
| `layouts.py`      | memory: orders of axes, signedness of codes, padding that is stored                          |

`LISTED` and `REORDERED` are the only listing: `explain`, `why`, `learn` and the search for pairs all read it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator

from tflq.diagnosis.mistakes.averages import mistaken_averages
from tflq.diagnosis.mistakes.channels import mistaken_channels, models_of_channels
from tflq.diagnosis.mistakes.constants import changes_of_constants
from tflq.diagnosis.mistakes.device import Change, Device, Mistaken, Source, guard, running
from tflq.diagnosis.mistakes.dynamic import mistaken_dynamic_ranges
from tflq.diagnosis.mistakes.floats import mistaken_floats
from tflq.diagnosis.mistakes.hybrids import mistaken_hybrids
from tflq.diagnosis.mistakes.layouts import mistaken_layouts, orders_of_axes
from tflq.diagnosis.mistakes.narrow_operands import mistaken_operands
from tflq.diagnosis.mistakes.orders import mistaken_orders
from tflq.diagnosis.mistakes.pairs_of_products import mistaken_pairs
from tflq.diagnosis.mistakes.positions import mistaken_positions
from tflq.diagnosis.mistakes.raw_codes import mistaken_codes
from tflq.diagnosis.mistakes.requantization import mistaken_profiles
from tflq.diagnosis.mistakes.results import mistaken_results
from tflq.diagnosis.mistakes.structure import mistaken_structure
from tflq.diagnosis.mistakes.taps import mistaken_taps, taps_together
from tflq.diagnosis.mistakes.tensors import mistaken_models
from tflq.diagnosis.mistakes.unchecked import unchecked
from tflq.engine.api.part import Part
from tflq.engine.profiles import Profile

__all__ = ["Device", "changes", "mistakes", "readings", "readings_together", "reorderings"]


def _models(alone: Part, profile: Profile) -> Iterator[Change]:
    for name, model in (*mistaken_models(alone.model), *models_of_channels(alone, profile)):
        yield Change(name, unchecked(profile), model)


def _stages(alone: Part, profile: Profile) -> Iterator[Change]:
    for name, wrong in mistaken_profiles(profile, alone.model):
        yield Change(name, wrong)


#: Mistakes by source, the likeliest first. A result at one place of an image depends only on the surroundings of that
#: place, wherever the image ends.
LISTED: dict[str, Source] = {
    "tensors": _models,
    "stages": _stages,
    "constants": changes_of_constants,
    "taps": running(mistaken_taps),
    "pairs of products": running(mistaken_pairs),
    "raw codes": running(mistaken_codes),
    "averages": running(mistaken_averages),
    "floats": running(mistaken_floats),
    "orders of sums": running(mistaken_orders),
    "quantization on the way": running(mistaken_hybrids),
    "narrow operands": running(mistaken_operands),
    "dynamic ranges": running(mistaken_dynamic_ranges),
    "positions": running(mistaken_positions),
    "results": running(mistaken_results),
    "channels": running(mistaken_channels),
    "layouts": running(mistaken_layouts),
}
#: The sources of which all changes may come before another mistake.
_LEADING = ("tensors", "stages", "constants")
#: Mistakes whose results depend on all elements of an image.
REORDERED: dict[str, Source] = {"orders of axes": orders_of_axes, "structure": mistaken_structure}


def mistakes(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield devices that compute as the profile except for one mistake, with the mistake's name."""
    for name, source in LISTED.items():
        yield from ((c.name, c.device) for c in guard(name, source, alone, profile))


def changes(alone: Part, profile: Profile) -> Iterator[Change]:
    """Yield the mistakes of LISTED that may come before another one."""
    for name in _LEADING:
        yield from (c for c in guard(name, LISTED[name], alone, profile) if c.profile is not None)


def reorderings(alone: Part, profile: Profile) -> Iterator[Change]:
    """Yield the mistakes of REORDERED."""
    for name, source in REORDERED.items():
        yield from guard(name, source, alone, profile)


def readings(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield mistakes in taps and averages."""
    yield from mistaken_taps(alone, profile)
    yield from mistaken_averages(alone, profile)


def readings_together(alone: Part, profile: Profile, leading: Container[str]) -> Iterator[Mistaken]:
    """Yield two of them at once, one of which has a `leading` name."""
    yield from taps_together(alone, profile, leading)
