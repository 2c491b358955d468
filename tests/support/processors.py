"""Which processor the tests run on."""

from __future__ import annotations

import pytest

from tflq.engine.numerics.eigen import FIRST_LEVEL_CACHE
from tflq.engine.profiles import PROFILES, Profile
from tflq.engine.runtimes.child.tflq_processor import describe

_FACTS = describe()
_OWN = _FACTS["vectors"]
#: The profile of XNNPACK on this processor; None if there is none.
XNNPACK = next((p for p in ("litert-xnnpack", "litert-xnnpack-avx2") if PROFILES[p].source.vectors == _OWN), None)

has_xnnpack_profile = pytest.mark.skipif(XNNPACK is None, reason=f"no profile has XNNPACK's sums for {_OWN}")


def own(name: str) -> str:
    """The name of the profile that a live runtime has on this processor, on which floats of XNNPACK depend."""
    return XNNPACK or name if name == "litert-xnnpack" else name


def here(name: str) -> Profile:
    """Return the profile with the first-level cache that runtimes find on this processor."""
    return PROFILES[name].with_first_level_cache(_FACTS["first_level_cache"] or FIRST_LEVEL_CACHE)
