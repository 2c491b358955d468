"""Profiles: values that say exactly which runtime's arithmetic is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from tflq.errors import UnknownNameError
from tflq.profiles.profile import Profile

__all__ = ["PROFILES", "Profile", "by_name"]

#: Where each profile lives: a module here, which holds it under its name in capitals.
_HOMES = {
    "litert-ref": "litert_ref",
    "litert-opt": "litert_opt",
    "litert-xnnpack": "litert_xnnpack",
    "litert-xnnpack-arm64": "litert_xnnpack_arm64",
    "litert-xnnpack-arm64-a53": "litert_xnnpack_arm64_a53",
    "tflite-2.14-ref": "tflite_2_14_ref",
    "tflite-2.14-opt": "tflite_2_14_opt",
    "tf-1.15-ref": "tf_1_15_ref",
    "tf-1.15-opt": "tf_1_15_opt",
    "tflm": "tflm",
    "spec": "spec",
    "litert-ref-arm64": "litert_ref_arm64",
    "litert-opt-arm64": "litert_opt_arm64",
    "tflite-2.14-ref-arm64": "tflite_2_14_ref_arm64",
    "tflite-2.14-opt-arm64": "tflite_2_14_opt_arm64",
}

#: How names of variants end, and what makes them.
_VARIANTS = {"+single-rounding": Profile.with_single_rounding}


class _Profiles(Mapping[str, Profile]):
    """Every profile, by name; one is loaded, with the kernels it needs, when it is first asked for."""

    def __getitem__(self, name: str) -> Profile:
        return _load(_HOMES[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


@cache
def _load(module: str) -> Profile:
    profile: Profile = getattr(import_module(f"{__name__}.{module}"), module.upper())
    return profile


PROFILES = _Profiles()


def by_name(profile: str | Profile) -> Profile:
    """The profile of that name; `NAME+single-rounding` is its variant. A Profile is returned as it is."""
    if isinstance(profile, Profile):
        return profile
    if profile in PROFILES:
        return PROFILES[profile]
    return _variant(profile)


@cache
def _variant(name: str) -> Profile:
    for ending, make in _VARIANTS.items():
        base = name.removesuffix(ending) if isinstance(name, str) else ""
        if base != name and base in PROFILES:
            return make(PROFILES[base])
    raise UnknownNameError("profile", name, tuple(PROFILES))
