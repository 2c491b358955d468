"""Profiles: values that say exactly which runtime's arithmetic is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from tflq.errors import UnknownNameError
from tflq.interrupts import import_whole
from tflq.profiles.profile import Profile

__all__ = ["PROFILES", "Profile", "by_name"]

#: Where each profile lives: a module here, which holds it under its name in capitals.
_HOMES = {
    "litert-ref": "litert_ref",
    "litert-opt": "litert_opt",
    "litert-2.4-ref": "litert_2_4_ref",
    "litert-2.4-opt": "litert_2_4_opt",
    "litert-2.4-xnnpack": "litert_2_4_xnnpack",
    "litert-xnnpack": "litert_xnnpack",
    "litert-xnnpack-avx512": "litert_xnnpack_avx512",
    "litert-js": "litert_js",
    "litert-xnnpack-arm64": "litert_xnnpack_arm64",
    "litert-xnnpack-arm64-a53": "litert_xnnpack_arm64_a53",
    "tflite-2.14-ref": "tflite_2_14_ref",
    "tflite-2.14-opt": "tflite_2_14_opt",
    "litert-2.0-ref": "litert_2_0_ref",
    "litert-2.0-opt": "litert_2_0_opt",
    "litert-2.0-xnnpack": "litert_2_0_xnnpack",
    "litert-1.4-opt": "litert_1_4_opt",
    "litert-1.4-xnnpack": "litert_1_4_xnnpack",
    "litert-1.0-ref": "litert_1_0_ref",
    "litert-1.0-opt": "litert_1_0_opt",
    "litert-1.0-xnnpack": "litert_1_0_xnnpack",
    "tflite-2.13-ref": "tflite_2_13_ref",
    "tflite-2.13-opt": "tflite_2_13_opt",
    "tflite-2.12-ref": "tflite_2_12_ref",
    "tflite-2.12-opt": "tflite_2_12_opt",
    "tflite-2.12-xnnpack": "tflite_2_12_xnnpack",
    "tflite-2.11-ref": "tflite_2_11_ref",
    "tflite-2.11-opt": "tflite_2_11_opt",
    "tflite-2.9-ref": "tflite_2_9_ref",
    "tflite-2.9-opt": "tflite_2_9_opt",
    "tflite-2.7-ref": "tflite_2_7_ref",
    "tflite-2.7-opt": "tflite_2_7_opt",
    "tf-2.5-ref": "tf_2_5_ref",
    "tf-2.5-opt": "tf_2_5_opt",
    "tf-2.3-opt": "tf_2_3_opt",
    "tf-1.15-ref": "tf_1_15_ref",
    "tf-1.15-opt": "tf_1_15_opt",
    "tflm": "tflm",
    "tflm-cmsis-nn": "tflm_cmsis_nn",
    "tflm-cmsis-nn-single": "tflm_cmsis_nn_single",
    "tflm-esp-nn": "tflm_esp_nn",
    "spec": "spec",
    "litert-ref-arm64": "litert_ref_arm64",
    "litert-opt-arm64": "litert_opt_arm64",
    "tflite-2.14-ref-arm64": "tflite_2_14_ref_arm64",
    "tflite-2.14-opt-arm64": "tflite_2_14_opt_arm64",
}

#: Other names: releases that give the same bits as the one that a profile is named for, and short ones.
_ALIASES = {
    "litert-xnn": "litert-xnnpack",
    "litert-xnn-arm64": "litert-xnnpack-arm64",
    "litert-xnn-arm64-a53": "litert-xnnpack-arm64-a53",
    "litert-1.4-xnn": "litert-1.4-xnnpack",
    **{f"litert-{v}-{r}": f"litert-{r}" for v in ("2.1", "2.2", "2.3") for r in ("ref", "opt", "xnnpack")},
    "litert-1.4-ref": "litert-2.0-ref",
    "litert-1.2-xnnpack": "litert-1.4-xnnpack",
    "litert-1.2-ref": "litert-1.0-ref",
    "litert-1.2-opt": "litert-1.0-opt",
    "tflite-2.10-ref": "tflite-2.11-ref",
    "tflite-2.10-opt": "tflite-2.11-opt",
    "tflite-2.8-ref": "tflite-2.7-ref",
    "tflite-2.8-opt": "tflite-2.7-opt",
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
    profile: Profile = getattr(import_whole(f"{__name__}.{module}"), module.upper())
    return profile


PROFILES = _Profiles()


def by_name(profile: str | Profile) -> Profile:
    """The profile of that name or alias; `NAME+single-rounding` is its variant. A Profile is returned as it is."""
    if isinstance(profile, Profile):
        return profile
    name = _ALIASES.get(profile, profile)
    return PROFILES[name] if name in PROFILES else _variant(name)


@cache
def _variant(name: str) -> Profile:
    for ending, make in _VARIANTS.items():
        base = name.removesuffix(ending) if isinstance(name, str) else ""
        base = _ALIASES.get(base, base)
        if base != name and base in PROFILES:
            return make(PROFILES[base])
    raise UnknownNameError("profile", name, tuple(PROFILES))
