"""Which processor the tests run on."""

from __future__ import annotations

import pytest

from tflq.profiles import PROFILES
from tflq.runtimes.processor import describe

_OWN = describe()["vectors"]
#: The profile of XNNPACK on this processor; None if there is none.
XNNPACK = next((p for p in ("litert-xnnpack", "litert-xnnpack-avx512") if PROFILES[p].source.vectors == _OWN), None)

has_xnnpack_profile = pytest.mark.skipif(XNNPACK is None, reason=f"no profile has XNNPACK's sums for {_OWN}")
