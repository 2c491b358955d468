"""Known mistakes of devices, each defined once and tried on every operator to which it applies.

| module         | mistakes in                                                                                         |
|----------------|-----------------------------------------------------------------------------------------------------|
| `stages.py`    | roundings, multipliers, shifts, channels' multipliers, widths of scaled values                      |
| `constants.py` | prepared constants: clamps, zero points, windows, tables; results of one sign, other clamps         |
| `tensors.py`   | the operator's own model: zero points, biases, filters, activations; single channels; raw codes     |
| `products.py`  | taps of contractions, pairs that saturate at 16 bits, orders and widths of sums of floats           |
| `averages.py`  | means of windows and axes: quotients, counts, codes; which input pixel a resized one copies         |
| `floats.py`    | dequantize, float operator, quantize; narrow operands; rows quantized on the way                    |
| `structure.py` | other axes, orders of operands, blocks and equal elements, modes of padding, broadcasts             |
| `layouts.py`   | memory: orders of axes, signedness of codes, padding that is stored                                 |
| `device.py`    | what a mistake is: a device, its guard, multipliers of scales, orders of axes                       |

`LISTED` is the only listing: `explain`, `why`, `learn` and the search for pairs all read it. To add a cause, write a
function that yields a `DeviceChange` (device.py), or names with devices, for an operator and a profile; add its row.
Faults that are no arithmetic are listed in `diagnosis/faults`, mistakes of a dump's user in `diagnosis/usage/search`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tflq.diagnosis.mistakes.averages import mistaken_averages, mistaken_positions
from tflq.diagnosis.mistakes.constants import changes_of_constants, mistaken_results
from tflq.diagnosis.mistakes.device import Device, DeviceChange, Mistaken, Source, guard, running, unchecked
from tflq.diagnosis.mistakes.floats import mistaken_dynamic_ranges, mistaken_floats, mistaken_hybrids, mistaken_operands
from tflq.diagnosis.mistakes.layouts import mistaken_layouts, orders_of_axes
from tflq.diagnosis.mistakes.products import mistaken_orders, mistaken_pairs, mistaken_taps
from tflq.diagnosis.mistakes.stages import mistaken_profiles
from tflq.diagnosis.mistakes.structure import mistaken_structure
from tflq.diagnosis.mistakes.tensors import mistaken_channels, mistaken_codes, mistaken_models, models_of_channels
from tflq.engine.api.many import Part
from tflq.engine.profiles import Profile

__all__ = ["LISTED", "Device", "Listed", "changes", "mistakes", "readings", "reorderings"]


def _models(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    for name, model in (*mistaken_models(alone.model), *models_of_channels(alone, profile)):
        yield DeviceChange(name, unchecked(profile), model)


def _stages(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    for name, wrong in mistaken_profiles(profile, alone.model):
        yield DeviceChange(name, wrong)


@dataclass(frozen=True, slots=True)
class Listed:
    """A source of mistakes, and how it is combined with others.

    Attributes:
        source: What yields the mistakes.
        leads: Whether its mistakes with a profile may come before another mistake.
        is_local: Whether a result at one place of an image depends only on the surroundings of that place, wherever the
            image ends. Other mistakes are not tried on thinner images.
        is_reading: Whether it misreads taps or averages, of which two may be combined.
    """

    source: Source
    leads: bool = False
    is_local: bool = True
    is_reading: bool = False


#: All mistakes by source, the likeliest first.
LISTED: dict[str, Listed] = {
    "tensors": Listed(_models, leads=True),
    "stages": Listed(_stages, leads=True),
    "constants": Listed(changes_of_constants, leads=True),
    "taps": Listed(running(mistaken_taps), is_reading=True),
    "pairs of products": Listed(running(mistaken_pairs)),
    "raw codes": Listed(running(mistaken_codes)),
    "averages": Listed(running(mistaken_averages), is_reading=True),
    "floats": Listed(running(mistaken_floats)),
    "orders of sums": Listed(running(mistaken_orders)),
    "quantization on the way": Listed(running(mistaken_hybrids)),
    "narrow operands": Listed(running(mistaken_operands)),
    "dynamic ranges": Listed(running(mistaken_dynamic_ranges)),
    "positions": Listed(running(mistaken_positions)),
    "results": Listed(running(mistaken_results)),
    "channels": Listed(running(mistaken_channels)),
    "layouts": Listed(running(mistaken_layouts)),
    "orders of axes": Listed(orders_of_axes, is_local=False),
    "structure": Listed(mistaken_structure, is_local=False),
}


def _of(alone: Part, profile: Profile, chosen: Callable[[Listed], bool]) -> Iterator[DeviceChange]:
    """Yield the mistakes of some sources. An error while one is listed loses none of the others."""
    for name, listed in LISTED.items():
        if chosen(listed):
            yield from guard(name, listed.source, alone, profile)


def mistakes(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield devices that compute as the profile except for one local mistake, with the mistake's name."""
    return ((c.name, c.device) for c in _of(alone, profile, lambda listed: listed.is_local))


def changes(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the mistakes that may come before another one, without those that depend on all elements of an image."""
    return (c for c in _of(alone, profile, lambda listed: listed.leads) if c.profile is not None)


def reorderings(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the mistakes whose results depend on all elements of an image."""
    return _of(alone, profile, lambda listed: not listed.is_local)


def readings(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield mistakes in taps and averages."""
    return ((c.name, c.device) for c in _of(alone, profile, lambda listed: listed.is_reading))
