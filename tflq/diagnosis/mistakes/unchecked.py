"""Profiles that take zero points beyond their type's range, which mistakes produce and runtimes refuse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tflq.engine.kernels.add_sub import reference as sub
from tflq.engine.kernels.families.scaled_sum import prepare_general
from tflq.engine.profiles import Profile


def unchecked(profile: Profile) -> Profile:
    """Return the profile without SUB's check of zero points, which ADD and MUL do not have."""
    rows = profile.kernels.get("SUB", ())
    free = partial(prepare_general, sign=-1)
    loose = tuple(replace(row, prepare=free) for row in rows if row.prepare is sub.prepare_sub)
    return profile.derive(profile.name, kernels={"SUB": loose}) if loose else profile
