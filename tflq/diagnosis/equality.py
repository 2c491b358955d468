"""Which hypotheses are proved to be the same function of one operator's inputs.

Three proofs: they are runs of the same kernel with the same constants; `tflq.proof` decides that profiles are equal on
the operator; or the operator works by element on one input of 8 bits, and all 256 codes at every place give the same
results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tflq.diagnosis.mistakes.device import Device, Under
from tflq.diagnosis.outcomes import digest, results
from tflq.errors import TflqError
from tflq.inspection.equality import same_operator
from tflq.kernels.kernel import Prepared
from tflq.profiles import Profile
from tflq.proof import Word
from tflq.proof.codes import ELEMENTWISE
from tflq.proof.proof import contrast
from tflq.surgery.part import Part

#: Hypotheses, and elements of all their runs, that are computed for a proof by all codes.
_MEMBERS, _ELEMENTS = 12, 1 << 18


def are_equal(devices: Sequence[Device], alone: Part) -> bool:
    """Whether all devices are proved to compute the same function."""
    if len(devices) == 1:
        return True
    profiles = [device.profile for device in devices if isinstance(device, Under) and device.model is None]
    if len(profiles) == len(devices) and _are_equal_profiles(profiles, alone):
        return True
    return len(devices) <= _MEMBERS and _agree_on_all_codes(devices, alone)


def _are_equal_profiles(profiles: Sequence[Profile], alone: Part) -> bool:
    first, *others = (_prepared(profile, alone) for profile in profiles)
    if first is not None and all(other is not None and same_operator(first, other) for other in others):
        return True
    specs = alone.model.subgraphs[0].tensors
    if first is None or None in others or any(specs[t].shape != x.shape for t, x in alone.inputs.items()):
        return False
    return all(verdict.word == Word.EQUAL for verdict in contrast(alone.model, 0, profiles[0], profiles[1:]))


def _prepared(profile: Profile, alone: Part) -> Prepared | None:
    """The constants and the function that a profile binds."""
    try:
        return alone.plan(profile).steps[0].prepared
    except TflqError:
        return None


def _agree_on_all_codes(devices: Sequence[Device], alone: Part) -> bool:
    name = alone.model.operator_codes[alone.model.subgraphs[0].operators[0].opcode_index].name
    values = list(alone.inputs.values())
    if name not in ELEMENTWISE or len(values) != 1 or len(alone.model.subgraphs[0].operators[0].inputs) != 1:
        return False
    if values[0].dtype not in (np.int8, np.uint8) or values[0].size * 256 > _ELEMENTS:
        return False
    for part in _all_codes(alone):
        found = {digest(results(device, part), part) for device in devices}
        if len(found) > 1 or None in found:
            return False
    return True


def _all_codes(alone: Part) -> Iterator[Part]:
    """Every code at every place; elements of one input are all different codes, as far as there are enough."""
    ((position, value),) = alone.inputs.items()
    codes = np.random.default_rng(0).permutation(np.arange(value.size) % 256)
    for step in range(256):
        moved = ((codes + step) % 256).astype(np.uint8).view(value.dtype).reshape(value.shape)
        yield replace(alone, inputs={position: moved})
