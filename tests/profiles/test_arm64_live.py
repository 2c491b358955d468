"""The AArch64 profiles against that build of LiteRT: random operators, bit by bit.

TFLQ_ARM64_PYTHON is the command line of a Python that has it: of the board itself, or of an emulator and its root.
"""

from __future__ import annotations

import pytest
from live import LITERT, hold, remote

RESOLVERS = {
    "litert-ref-arm64": "BUILTIN_REF",
    "litert-opt-arm64": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack-arm64": "BUILTIN",
}
#: What XNNPACK is known to do otherwise now and then, and is not modelled.
NAMED = {
    "BATCH_MATMUL": "int8: a code in thousands is off by one",
    "RELU_N1_TO_1": "subnormal floats become 0",
    "TRANSPOSE_CONV": "int8: a code in hundreds is off by one",
}


@pytest.mark.parametrize("profile", list(RESOLVERS))
def test_random_operators(profile: str) -> None:
    runtime = remote("TFLQ_ARM64_PYTHON", LITERT, RESOLVERS[profile])
    found = hold(profile, runtime, 6, 400, ("exact",), without=NAMED if "xnnpack" in profile else ())
    runtime.close()
    assert not found.differing, found.differing[0]
    assert found.same > 200
