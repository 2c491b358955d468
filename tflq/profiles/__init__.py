"""Profiles: values that say exactly which runtime's arithmetic is meant."""

from __future__ import annotations

from tflq.errors import UnknownNameError
from tflq.profiles.litert_ref import LITERT_REF
from tflq.profiles.profile import Profile

__all__ = ["PROFILES", "Profile", "by_name"]

#: Every profile, by name.
PROFILES = {profile.name: profile for profile in (LITERT_REF,)}


def by_name(profile: str | Profile) -> Profile:
    """The profile of that name; a Profile is returned as it is."""
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise UnknownNameError("profile", profile, tuple(PROFILES))
    return PROFILES[profile]
