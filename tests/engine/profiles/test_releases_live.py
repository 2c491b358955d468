"""The profiles of releases against these packages themselves: random operators and graphs, bit by bit.

TFLQ_LITERT_2_0_PYTHON and so on are the command lines of Pythons that have them.
"""

from __future__ import annotations

import sys

import fuzz_graphs
import pytest

from support.live import LITERT, RUNTIME, hold, remote
from tflq.engine.profiles import PROFILES

RESOLVERS = {"ref": "BUILTIN_REF", "opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnnpack": "BUILTIN"}
RELEASES = ("tflite-2.14", "litert-1.0", "litert-1.4", "litert-2.0", "litert-2.1", "litert-2.2")
#: Types that NumPy cannot hand to these releases, or that their operators refuse by value.
UNTRIED = ("uint16", "int4")
#: What depends on values: sums of other scales, divisors of code 0, places without a dimension of their own.
BY_VALUE = ("DIV ", "SUM ", "SPARSE_TO_DENSE ")


def variable(release: str) -> str:
    return f"TFLQ_{release.upper().replace('-', '_').replace('.', '_')}_PYTHON"


@pytest.mark.parametrize("resolver", ["ref", "opt"])
@pytest.mark.parametrize("release", RELEASES)
def test_random_operators(release: str, resolver: str) -> None:
    module = RUNTIME if release.startswith("tflite") else LITERT
    runtime = remote(variable(release), module, RESOLVERS[resolver])
    profile = f"{release}-{resolver}"
    if profile not in PROFILES:
        pytest.skip(f"{profile} is no profile: it has the bits of a later one")
    found = hold(profile, runtime, 5, 700, ("exact", "exact on the same libm"))
    runtime.close()
    assert not found.differing, found.differing[0]
    accepted = [note for note in found.accepted if not any(word in note for word in (*UNTRIED, *BY_VALUE))]
    accepted = [note for note in accepted if not any(word in note for word in fuzz_graphs.LACKS)]
    assert not accepted, accepted[0]
    assert found.same > 300


@pytest.mark.parametrize("release", RELEASES[1:])  # 2.14 writes beyond outputs of resized models
def test_random_graphs(release: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = remote(variable(release), LITERT, "")  # skips where there is none
    python = runtime.command[0]
    runtime.close()
    against = ",".join(name for name in (f"{release}-{resolver}" for resolver in RESOLVERS) if name in PROFILES)
    monkeypatch.setattr(sys, "argv", ["", "--count", "150", "--seed", "11", "--against", against, "--python", python])
    assert fuzz_graphs.main() == 0, capsys.readouterr().out
