"""Profiles: values that name exactly one runtime's arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from tflq.engine.profiles.profile import Profile
from tflq.engine.profiles.table import ALIASES, ROWS
from tflq.errors import UnknownNameError
from tflq.interrupts import import_whole

__all__ = ["PROFILES", "Profile", "by_name"]


class _Profiles(Mapping[str, Profile]):
    """Every profile, by name; one is built when it is first asked for."""

    def __getitem__(self, name: str) -> Profile:
        if name not in ROWS:
            raise KeyError(name)
        profile: Profile = import_whole(f"{__name__}.building").profile_of(name)
        return profile

    def __iter__(self) -> Iterator[str]:
        return iter(ROWS)

    def __len__(self) -> int:
        return len(ROWS)


PROFILES = _Profiles()


def with_static_alpha(profile: Profile) -> Profile:
    """Return a profile of r1.15 whose uint8 LEAKY_RELUs all use the alpha of the first one that runs.

    That is what a process computes which runs one model and nothing before it: the kernel keeps alpha in a static.
    """
    if profile.runtime.release != "tf-1.15":
        raise UnknownNameError("profile", f"{profile.name}+static-alpha", tuple(PROFILES))
    rows = import_whole("tflq.engine.kernels.leaky_relu.tf1").STATIC_ALPHA
    variants = [*profile.stated.get("variants", ()), "static-alpha"]
    return profile.derive(f"{profile.name}+static-alpha", kernels=rows).stating({"variants": variants})


#: How names of variants end, and the functions that make them.
VARIANTS: Mapping[str, Callable[[Profile], Profile]] = {
    "+single-rounding": Profile.with_single_rounding,
    "+static-alpha": with_static_alpha,
}


def by_name(profile: str | os.PathLike[str] | Profile) -> Profile:
    """Return the profile of a name, an alias, a variant such as `NAME+single-rounding`, or a file; a Profile as it is.

    Names are accepted in any case.
    Files end in `.yaml`, `.yml` or `.json` (tflq/engine/profiles/file.py).

    Raises:
        UnknownNameError: There is no such profile.
        InputError: A file cannot be read or does not state a profile.
    """
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, os.PathLike):
        profile = os.fspath(profile)
    if not isinstance(profile, str):
        raise UnknownNameError("profile", str(profile), tuple(PROFILES))
    if profile.lower().endswith((".yaml", ".yml", ".json")):
        loaded: Profile = import_whole(f"{__name__}.file").load_profile(profile)
        return loaded
    name = ALIASES.get(profile, profile)
    if name not in PROFILES:
        name = ALIASES.get(name.lower(), name.lower())
    return PROFILES[name] if name in PROFILES else _variant(name)


@cache
def _variant(name: str) -> Profile:
    for ending, make in VARIANTS.items():
        base = name.removesuffix(ending) if isinstance(name, str) else ""
        base = ALIASES.get(base, base)
        if base != name and base in PROFILES:
            return make(PROFILES[base])
    raise UnknownNameError("profile", name, tuple(PROFILES))
