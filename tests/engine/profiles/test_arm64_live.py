"""The AArch64 profiles against that build of LiteRT: random operators, bit by bit.

TFLQ_ARM64_PYTHON is the command line of a Python that has it: of the board itself, or of an emulator and its root.
"""

from __future__ import annotations

import pytest

from support.live import LITERT, hold, remote

RESOLVERS = {
    "litert-ref-arm64": "BUILTIN_REF",
    "litert-opt-arm64": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-xnnpack-arm64": "BUILTIN",
}
#: Rows of XNNPACK's that were held against its x86-64 build only.
UNTRIED = ("BATCH_MATMUL", "TRANSPOSE_CONV")


@pytest.mark.parametrize("profile", list(RESOLVERS))
def test_random_operators(profile: str) -> None:
    runtime = remote("TFLQ_ARM64_PYTHON", LITERT, RESOLVERS[profile])
    found = hold(profile, runtime, 6, 400, ("exact",), without=UNTRIED if "xnnpack" in profile else ())
    runtime.close()
    assert not found.differing, found.differing[0]
    assert found.same > 200
