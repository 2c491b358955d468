"""The profile of the runtime that a recording comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.runtimes import Description
from tflq.errors import UnknownNameError
from tflq.statements import Statement

#: Prefixes of the names of profiles for a package's releases.
_FAMILIES = {
    "ai-edge-litert": "litert",
    "ai-edge-litert-nightly": "litert",
    "tflite-runtime": "tflite",
    "tensorflow": "tflite",
}
#: Suffixes of the names of profiles for LiteRT's resolvers, by the last part of a runtime's name.
_RESOLVERS = ("ref", "opt", "xnnpack")
_RELEASE = re.compile(r"[a-z]+-\d+\.\d+-[a-z]+")


def counterpart(runtime: Description | Mapping[str, object]) -> tuple[Profile, str]:
    """Return the profile of a runtime, and a note that names the compared profile if its release has none.

    `runtime` is the description of a run, or that in a golden file. The profile is that of the processor's vector
    extension if there is one. Where XNNPACK was given no operator, the built-in kernels ran.
    """
    name, package, version, machine, vectors = _facts(runtime)
    if name.endswith("-xnnpack") and _took_nothing(runtime):
        name = name.removesuffix("xnnpack") + "opt"
    resolver = name.rpartition("-")[2]
    release = ".".join(version.split(".")[:2])
    exact = f"{_FAMILIES.get(package, package)}-{release}-{resolver}"
    arm = [f"{candidate}-arm64" for candidate in (exact, name)] if "aarch64" in machine or "arm64" in machine else []
    for candidate in (*arm, exact, name):
        profile = _known(candidate)
        if profile is not None:
            family = vectors.lower().replace("-", "").partition(" ")[0]
            return _known(f"{profile.name}-{family}") or profile, ""
    profile = _nearest(package, release, resolver)
    if not name:
        return profile, ""
    said = f"{name} {version}".strip()
    note = f"there is no profile of {said}: {profile.name} is compared; --profile names another"
    return profile, Statement(note, "nearest-profile", runtime=name, version=version, profile=profile.name)


def _nearest(package: str, release: str, resolver: str) -> Profile:
    """Return the profile of the nearest release of a package with a resolver; without one, the newest LiteRT's."""
    family = _FAMILIES.get(package, package)
    names = (name for name in PROFILES if _RELEASE.fullmatch(name))
    rivals = [name for name in names if name.startswith(f"{family}-") and name.endswith(f"-{resolver}")]
    if rivals and release:
        return by_name(min(rivals, key=lambda name: abs(_number(name.split("-")[1]) - _number(release))))
    return by_name(f"litert-{resolver}" if resolver in _RESOLVERS else "litert-ref")


def _number(release: str) -> float:
    """Return a release as a number that is larger for later ones; infinity if it is not written as two numbers."""
    major, _, minor = release.partition(".")
    return int(major) * 1000 + int(minor) if major.isdecimal() and minor.isdecimal() else float("inf")


def own_profile(runtime: Description | Mapping[str, object]) -> Profile | None:
    """Return the profile of exactly this runtime; None if its release has none, or the runtime is not named."""
    profile, note = counterpart(runtime)
    return None if note or not _facts(runtime)[0] else profile


def _facts(runtime: Description | Mapping[str, object]) -> tuple[str, str, str, str, str]:
    """Return name, package, version, platform and vector extension."""
    if not isinstance(runtime, Mapping):
        return runtime.name, runtime.package, runtime.version, runtime.platform.lower(), runtime.vectors
    keys = ("name", "package", "version", "platform", "vectors")
    name, package, version, platform, vectors = (str(runtime.get(key) or "") for key in keys)
    return name, package, version, platform.lower(), vectors


def _took_nothing(runtime: Description | Mapping[str, object]) -> bool:
    """Return whether the delegate is recorded to have taken no partition of any model."""
    counts = runtime.get("delegated") if isinstance(runtime, Mapping) else runtime.delegated
    return isinstance(counts, (list, tuple)) and len(counts) > 0 and not any(counts)


def _known(name: str) -> Profile | None:
    try:
        return by_name(name)
    except UnknownNameError:
        return None
