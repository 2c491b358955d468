"""The profiles of release 2.14 against tflite-runtime 2.14 itself: random operators, bit by bit.

TFLQ_TFLITE_2_14_PYTHON is the command line of a Python that has it.
"""

from __future__ import annotations

import pytest

from support.live import RUNTIME, hold, remote

RESOLVERS = {"tflite-2.14-ref": "BUILTIN_REF", "tflite-2.14-opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}
#: Types that NumPy cannot hand to that release, or that its operators refuse by value.
UNTRIED = ("uint16", "int4")


@pytest.mark.parametrize("profile", list(RESOLVERS))
def test_random_operators(profile: str) -> None:
    runtime = remote("TFLQ_TFLITE_2_14_PYTHON", RUNTIME, RESOLVERS[profile])
    found = hold(profile, runtime, 5, 700, ("exact", "exact on the same libm"))
    runtime.close()
    assert not found.differing, found.differing[0]
    accepted = [note for note in found.accepted if not any(type_ in note for type_ in UNTRIED)]
    assert not accepted, accepted[0]
    assert found.same > 300
