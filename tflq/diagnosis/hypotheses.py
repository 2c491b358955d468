"""Hypotheses about a device's arithmetic of one operator: other profiles, single fields of theirs, mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import partial
from typing import Any

from tflq.diagnosis.mistakes import Device, mistakes, reorderings
from tflq.diagnosis.mistakes.device import Under
from tflq.engine.api.part import Part
from tflq.engine.kernels.validity import XNNPACK
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.profile import Source


class Kind(str, Enum):
    """The source of a hypothesis: a profile, one field of another's arithmetic, a mistake, or two mistakes."""

    PROFILE = "profile"
    ARITHMETIC = "arithmetic"
    MISTAKE = "mistake"
    MISTAKES = "mistakes"


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A name, and the device that computes it for its operator."""

    kind: Kind
    name: str
    device: Device


def hypotheses(alone: Part, profile: Profile, *, only_profiles: bool = False) -> Iterator[Hypothesis]:
    """Yield every hypothesis, or those that are profiles, the most probable first."""
    for kind, other in _profiles(profile):
        if kind == Kind.PROFILE or not only_profiles:
            yield Hypothesis(kind, other.name, device_of(other))
    if only_profiles:
        return
    for name, device in mistakes(alone, profile):
        yield Hypothesis(Kind.MISTAKE, name, device)
    yield from of_orders(alone, profile)


def of_orders(alone: Part, profile: Profile) -> Iterator[Hypothesis]:
    """Yield the mistakes in orders and axes."""
    for change in reorderings(alone, profile):
        yield Hypothesis(Kind.MISTAKE, change.name, change.device)


def device_of(profile: Profile) -> Device:
    """Return a device that computes as a profile."""
    return Under(profile)


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


def _profiles(base: Profile) -> Iterator[tuple[Kind, Profile]]:
    """Yield every other profile and its variant that rounds once, the nearest first.

    The base with one field of another profile's arithmetic comes before the variants.
    """
    others = [by_name(name) for name in PROFILES if name != base.name]
    once = base.with_single_rounding()
    own = () if once.arithmetic == base.arithmetic else (once,)
    variants = [once for other in others if (once := other.with_single_rounding()).arithmetic != other.arithmetic]
    for other in sorted((*others, *own), key=partial(nearness, base)):
        yield Kind.PROFILE, other
    for axis in fields(base.arithmetic):
        tried = [getattr(base.arithmetic, axis.name)]
        for other in (*others, *own):
            value = getattr(other.arithmetic, axis.name)
            if value not in tried:
                tried.append(value)
                wrong: dict[str, Any] = {axis.name: value}
                changed = replace(base.arithmetic, **wrong)
                yield Kind.ARITHMETIC, base.derive(f"{axis.name} of {other.name}", arithmetic=changed)
    for other in sorted(variants, key=partial(nearness, base)):
        yield Kind.PROFILE, other
