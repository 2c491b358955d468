"""Hypotheses about one operator's arithmetic, and which are the same function.

Hypotheses about a device's arithmetic of one operator: other profiles, single fields of theirs, mistakes.

A device's results of an operator, next to the dump's.

Decide which hypotheses are proved to be the same function of one operator's inputs.

There are three proofs:

- the hypotheses are runs of the same kernel with the same constants;
- `tflq.proof` decides that their profiles are equal on the operator;
- the operator works by element on one 8-bit input, and all 256 codes at every place give the same results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.inspection.difference import digest_of, unequal
from tflq.comparison.inspection.prepared import Kinds, parts_of
from tflq.diagnosis.mistakes import mistakes, reorderings
from tflq.diagnosis.mistakes.device import Device, Under
from tflq.diagnosis.mistakes.stages import NarrowAccumulator
from tflq.engine.api.many import Part
from tflq.engine.kernels.kernel import Prepared
from tflq.engine.kernels.validity import XNNPACK
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.requantizer import GrammarStage
from tflq.engine.numerics.stages import OutputPipeline
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.profile import Source
from tflq.errors import TflqError
from tflq.proof import Word
from tflq.proof.codes import ELEMENTWISE
from tflq.proof.proof import contrast
from tflq.typing import Array


class HypothesisKind(str, Enum):
    """The source of a hypothesis: a profile, one field of another's arithmetic, a mistake, or two mistakes."""

    PROFILE = "profile"
    ARITHMETIC = "arithmetic"
    MISTAKE = "mistake"
    MISTAKES = "mistakes"


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A name, and the device that computes it for its operator."""

    kind: HypothesisKind
    name: str
    device: Device


def hypotheses(alone: Part, profile: Profile, *, only_profiles: bool = False) -> Iterator[Hypothesis]:
    """Yield every hypothesis, or those that are profiles, the most probable first."""
    for kind, other in _profiles(profile):
        if kind == HypothesisKind.PROFILE or not only_profiles:
            yield Hypothesis(kind, other.name, Under(other))
    if only_profiles:
        return
    for name, device in mistakes(alone, profile):
        yield Hypothesis(HypothesisKind.MISTAKE, name, device)
    yield from of_orders(alone, profile)


def of_orders(alone: Part, profile: Profile) -> Iterator[Hypothesis]:
    """Yield the mistakes in orders and axes."""
    for change in reorderings(alone, profile):
        yield Hypothesis(HypothesisKind.MISTAKE, change.name, change.device)


def nearness(base: Profile, other: Profile) -> tuple[int, ...]:
    """Return the key that orders profiles by their distance from `base`.

    The first four entries are flags: no runtime computes it (`spec`), its kernels differ, only one of them is for
    microcontrollers, the release differs. Then come the numbers of different arithmetic fields and of different facts
    of the runtime. Fields of XNNPACK count between profiles that run it.
    """
    has_other_kernels = base.kernels is not other.kernels
    is_nobodys = other.source.package == "none"
    is_micro, also_micro = (p.source.package == "tflite-micro" for p in (base, other))
    both_delegate = base.runtime.resolver == other.runtime.resolver == XNNPACK
    released, also_released = ((p.source.package, p.source.version) for p in (base, other))
    return (
        int(is_nobodys),
        int(has_other_kernels),
        int(is_micro != also_micro),
        int(released != also_released),
        _change(base.arithmetic, other.arithmetic, "" if both_delegate else "xnnpack_"),
        _change(base.source, other.source),
    )


def _change(one: Arithmetic | Source, other: Arithmetic | Source, without: str = "") -> int:
    """Return the number of fields that differ, of those that do not begin with `without` if that is given."""
    names = (field.name for field in fields(one) if not without or not field.name.startswith(without))
    return sum(getattr(one, name) != getattr(other, name) for name in names)


def _profiles(base: Profile) -> Iterator[tuple[HypothesisKind, Profile]]:
    """Yield every other profile and its variant that rounds once, the nearest first.

    The base with one field of another profile's arithmetic comes before the variants.
    """
    others = [by_name(name) for name in PROFILES if name != base.name]
    once = base.with_single_rounding()
    own = () if once.arithmetic == base.arithmetic else (once,)
    variants = [once for other in others if (once := other.with_single_rounding()).arithmetic != other.arithmetic]
    for other in sorted((*others, *own), key=partial(nearness, base)):
        yield HypothesisKind.PROFILE, other
    for axis in fields(base.arithmetic):
        tried = [getattr(base.arithmetic, axis.name)]
        for other in (*others, *own):
            value = getattr(other.arithmetic, axis.name)
            if value not in tried:
                tried.append(value)
                wrong: dict[str, Any] = {axis.name: value}
                changed = replace(base.arithmetic, **wrong)
                yield HypothesisKind.ARITHMETIC, base.derive(f"{axis.name} of {other.name}", arithmetic=changed)
    for other in sorted(variants, key=partial(nearness, base)):
        yield HypothesisKind.PROFILE, other


#: Results by original tensor index.
Results: TypeAlias = "Mapping[int, Array]"


@dataclass(frozen=True, slots=True)
class Raised:
    """A hypothesis that raised an exception other than a refusal: its name, the exception's class and text."""

    name: str
    kind: str
    text: str


def results(device: Device, alone: Part, name: str = "", faults: dict[str, Raised] | None = None) -> Results:
    """Return a device's results for the tensors in the dump; nothing if it cannot run.

    Wrong constants may break guarantees of the kernel's own preparation. An exception other than a refusal is noted in
    `faults`, under the hypothesis's name.
    """
    try:
        with np.errstate(all="ignore"):
            computed = device(alone)
    except TflqError:
        return {}
    except Exception as error:
        if faults is not None:
            faults[name] = Raised(name, type(error).__name__, str(error))
        return {}
    return {t: computed[t] for t in alone.got if t in computed}


def fits(values: Results, alone: Part) -> bool:
    """Return whether all results of the dump are present, with their shape and type."""
    return all(
        t in values and (values[t].shape, values[t].dtype) == (dumped.shape, dumped.dtype)
        for t, dumped in alone.got.items()
    )


def digest(values: Results, alone: Part) -> bytes | None:
    """Return a hash of all results in the dump; None if one is missing or has another shape or type."""
    if not fits(values, alone):
        return None
    return digest_of(values[tensor] for tensor in alone.got)


def reproduces(device: Device, alone: Part) -> bool:
    """Return whether a device reproduces every bit of the dump."""
    matching, elements = score(results(device, alone), alone.got)
    return matching == elements


def score(values: Results, got: Results) -> tuple[int, int]:
    """Return the number of elements that agree bit by bit, and the number of all."""
    matching = 0
    for tensor, dumped in got.items():
        value = values.get(tensor)
        if value is not None and value.shape == dumped.shape and value.dtype == dumped.dtype:
            matching += dumped.size - int(np.count_nonzero(unequal(value, dumped)))
    return matching, sum(dumped.size for dumped in got.values())


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
    profiles = [device.profile for device in devices if isinstance(device, Under) and device.is_plain]
    if len(profiles) == len(devices) and _are_equal_profiles(profiles, alone):
        return True
    return len(devices) <= _MEMBERS and _agree_on_all_codes(devices, alone)


def _are_equal_profiles(profiles: Sequence[Profile], alone: Part) -> bool:
    """Compare each different binding with the first one, by a proof if they are not the same."""
    kinds, different = Kinds(), dict[int, Profile]()
    for profile in profiles:
        prepared = _prepare(profile, alone)
        if prepared is None:
            return False
        different.setdefault(kinds.of(prepared), profile)
    if len(different) == 1:
        return True
    specs = alone.graph.tensors
    if any(specs[t].shape != x.shape for t, x in alone.inputs.items()):
        return False
    if any(map(_has_mistakes, kinds.known)) and _constants(alone) > _CONSTANTS:
        return False
    first, *others = different.values()
    verdicts = (contrast(alone.model, 0, first, [other])[0] for other in others)
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
