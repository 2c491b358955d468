"""What a device may have done to one operator: other profiles, single fields of their arithmetic, mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from tflq.diagnosis.localization import Alone
from tflq.diagnosis.mistakes import Device, mistakes, reorderings
from tflq.profiles import PROFILES, Profile, by_name


def hypotheses(alone: Alone, profile: Profile) -> Iterator[tuple[str, str, Device]]:
    """Kind, name and device of every hypothesis, the most probable first."""
    for kind, other in _profiles(profile):
        yield kind, other.name, device_of(other)
    for name, device in (*mistakes(alone, profile), *reorderings(alone, profile)):
        yield "mistake", name, device


def device_of(profile: Profile) -> Device:
    """A device that computes as a profile does."""
    return lambda alone: alone.run(alone.plan(profile))


def _profiles(base: Profile) -> Iterator[tuple[str, Profile]]:
    """Every other profile; the base with one field of another's arithmetic; the other profiles rounding once."""
    others = [by_name(name) for name in PROFILES if name != base.name]
    own = base.with_single_rounding()
    for other in (*others, own):
        yield "profile", other
    for axis in fields(base.arithmetic):
        seen = [getattr(base.arithmetic, axis.name)]
        for other in (*others, own):
            value = getattr(other.arithmetic, axis.name)
            if value not in seen:
                seen.append(value)
                wrong: dict[str, Any] = {axis.name: value}
                changed = replace(base.arithmetic, **wrong)
                yield "arithmetic", base.derive(f"{axis.name} of {other.name}", arithmetic=changed)
    for other in others:
        yield "profile", other.with_single_rounding()
