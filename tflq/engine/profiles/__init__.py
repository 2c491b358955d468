"""Profiles: values that name exactly one runtime's arithmetic."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tflq.engine.profiles.profile import Profile
from tflq.engine.profiles.table import ALIASES, ROWS
from tflq.errors import UnknownNameError
from tflq.interrupts import import_whole

if TYPE_CHECKING:
    from tflq.engine.kernels.table import Rows

__all__ = ["PROFILES", "OwnKernels", "Profile", "by_name", "own_kernels_within"]


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
    rows = import_whole("tflq.engine.kernels.leaky_relu").STATIC_ALPHA
    variants = [*profile.stated.get("variants", ()), "static-alpha"]
    return profile.derive(f"{profile.name}+static-alpha", kernels=rows).stating({"variants": variants})


#: How names of variants end, and the functions that make them.
VARIANTS: Mapping[str, Callable[[Profile], Profile]] = {
    "+single-rounding": Profile.with_single_rounding,
    "+static-alpha": with_static_alpha,
}


@dataclass(frozen=True, slots=True, eq=False)
class OwnKernels:
    """Kernels of the user's own, and their name: `NAME+WORD` is a profile with their rows before its own."""

    word: str
    rows: Mapping[str, Rows]


_OWN: ContextVar[tuple[OwnKernels, ...]] = ContextVar("own_kernels", default=())


@contextmanager
def own_kernels_within(own: OwnKernels) -> Iterator[None]:
    """Let profiles be named `NAME+WORD` in the block. Other names load nothing: they may come from files."""
    token = _OWN.set((*_OWN.get(), own))
    try:
        yield
    finally:
        _OWN.reset(token)


def own_operators(profile: str) -> frozenset[str]:
    """Return the operators that kernels of the user's own compute under the profile of a name."""
    return frozenset(op for own in _OWN.get() if profile.endswith(f"+{own.word}") for op in own.rows)


@cache
def _with_own(base: Profile, own: OwnKernels) -> Profile:
    return base.derive(f"{base.name}+{own.word}", kernels=own.rows)


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
    for own in _OWN.get():
        if profile.endswith(f"+{own.word}"):
            return _with_own(by_name(profile.removesuffix(f"+{own.word}")), own)
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
