"""The processor that a runtime ran on, and that of a profile."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Description
from tflq.statements import Statement


def match(profile: Profile, runtime: Description | Mapping[str, object]) -> tuple[Profile, str]:
    """Return the profile with the first-level cache of the runtime's processor, and a note on another vector extension.

    `runtime` is the description of a run, or that in a golden file. The note is empty if the extensions are the same,
    if one of them is unknown, or if the profile's results do not depend on one.
    """
    facts = runtime if isinstance(runtime, Mapping) else {name: getattr(runtime, name) for name in _FACTS}
    vectors, cache, system = (facts.get(name) for name in _FACTS)
    is_x86 = profile.source.cpu.startswith("x86-64") and str(system).lower().endswith(("x86_64", "amd64"))
    if is_x86 and isinstance(cache, int) and cache > 0:
        profile = profile.with_first_level_cache(cache)
    expected = profile.source.vectors
    if not (is_x86 and expected and vectors) or vectors == expected:
        return profile, ""
    text = f"profile: {expected}; here: {vectors}: results of float operators may differ"
    return profile, Statement(text, "other-vectors", profile=profile.name, expected=expected, here=vectors)


_FACTS = ("vectors", "first_level_cache", "platform")
