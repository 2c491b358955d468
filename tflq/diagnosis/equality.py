"""Decide which hypotheses are proved to be the same function of one operator's inputs.

There are three proofs:

- the hypotheses are runs of the same kernel with the same constants;
- `tflq.proof` decides that their profiles are equal on the operator;
- the operator works by element on one 8-bit input, and all 256 codes at every place give the same results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tflq.comparison.inspection.equality import same_operator
from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.hypotheses import Hypothesis
from tflq.diagnosis.mistakes.device import Device, Under
from tflq.diagnosis.mistakes.stages import NarrowAccumulator
from tflq.diagnosis.outcomes import digest, results
from tflq.engine.api.part import Part
from tflq.engine.kernels.kernel import Prepared
from tflq.engine.numerics.requantizer_stage import GrammarStage
from tflq.engine.numerics.stages import OutputPipeline
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.proof import Word
from tflq.proof.codes import ELEMENTWISE
from tflq.proof.proof import contrast

MISTAKEN_STAGES = (GrammarStage, NarrowAccumulator)
#: Limits on hypotheses, and on elements of all their runs, that are computed for a proof by all codes.
_MEMBERS, _ELEMENTS = 32, 1 << 19
#: The number of weights up to which all accumulators are compared for stages that proofs do not model.
_CONSTANTS = 1 << 11


def are_equal(hypotheses: Sequence[Hypothesis], alone: Part) -> bool:
    """Return whether all hypotheses are proved to compute the same function."""
    if len(hypotheses) == 1:
        return True
    devices = [h.device for h in hypotheses]
    profiles = [device.profile for device in devices if isinstance(device, Under) and device.model is None]
    if len(profiles) == len(devices) and _are_equal_profiles(profiles, alone):
        return True
    return len(devices) <= _MEMBERS and _agree_on_all_codes(devices, alone)


def _are_equal_profiles(profiles: Sequence[Profile], alone: Part) -> bool:
    """Compare each different binding with the first one, by a proof if they are not the same."""
    different: list[tuple[Profile, Prepared]] = []
    for profile in profiles:
        prepared = _prepare(profile, alone)
        if prepared is None:
            return False
        if not any(same_operator(prepared, other) for _, other in different):
            different.append((profile, prepared))
    if len(different) == 1:
        return True
    specs = alone.graph.tensors
    if any(specs[t].shape != x.shape for t, x in alone.inputs.items()):
        return False
    if any(_has_mistakes(prepared) for _, prepared in different) and _constants(alone) > _CONSTANTS:
        return False
    (first, _), *others = different
    verdicts = (contrast(alone.model, 0, first, [other])[0] for other, _ in others)
    return all(verdict.word == Word.EQUAL for verdict in verdicts)


def _constants(alone: Part) -> int:
    """Return the number of elements of the operator's other operands, such as its weights."""
    tensors = alone.graph.tensors
    return sum(math.prod(tensors[t].shape) for t in alone.op.inputs if t >= 0 and t not in alone.inputs)


def _has_mistakes(prepared: Prepared) -> bool:
    """Return whether some output stage is unknown to proofs, which would then compare all accumulators."""
    return any(isinstance(part.value.stage, MISTAKEN_STAGES) for part in parts_of(prepared.data, OutputPipeline))


def _prepare(profile: Profile, alone: Part) -> Prepared | None:
    """Return the constants and the function that a profile binds."""
    try:
        return alone.plan(profile).steps[0].prepared
    except TflqError:
        return None


def _agree_on_all_codes(devices: Sequence[Device], alone: Part) -> bool:
    values = list(alone.inputs.values())
    if alone.op.builtin not in ELEMENTWISE or len(values) != 1 or len(alone.op.inputs) != 1:
        return False
    if values[0].dtype not in (np.int8, np.uint8) or values[0].size * 256 > _ELEMENTS:
        return False
    for part in _all_codes(alone):
        found = {digest(results(device, part), part) for device in devices}
        if len(found) > 1 or None in found:
            return False
    return True


def _all_codes(alone: Part) -> Iterator[Part]:
    """Yield every code at every place; the elements of one input are all different codes, as far as possible."""
    ((position, value),) = alone.inputs.items()
    codes = np.random.default_rng(0).permutation(np.arange(value.size) % 256)
    for step in range(256):
        moved = ((codes + step) % 256).astype(np.uint8).view(value.dtype).reshape(value.shape)
        yield replace(alone, inputs={position: moved})
