"""Compiled functions are linked if numba has the interfaces for it, else compiled alone; results are the same."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from tflq.engine.jit import compiled

#: A chain of compiled functions, with a numba that claims another version.
CALLS = """
import numba
numba.__version__ = "{version}"
from tflq.engine.numerics.multiplier import multiply_double_rounding
from tflq.engine.jit.compiled import compiled

@compiled
def twice(x, mantissa, shift):
    return multiply_double_rounding(multiply_double_rounding(x, mantissa, shift), mantissa, shift)

print(twice(1000, 3 << 29, -1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.68.1", "0.62.0", "0.69.0", "1.0"])
def test_every_version_computes_the_same(version: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        [sys.executable, "-c", CALLS.format(version=version)], capture_output=True, text=True, env=environment
    )
    assert ran.stdout == "141\n", ran.stderr
    warned = ran.stderr.count("compiles every function by itself")
    assert warned == (0 if version in ("0.68.1", "0.62.0") else 1), ran.stderr


def test_interfaces_that_are_not_there_are_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> None:
        raise ImportError("cannot import name '_LowerResult'")

    compiled.is_known.cache_clear()
    monkeypatch.setattr(compiled, "_parts", missing)
    with caplog.at_level(logging.WARNING, logger="tflq"):
        assert not compiled.is_known()
    assert "_LowerResult" in caplog.text
    compiled.is_known.cache_clear()
