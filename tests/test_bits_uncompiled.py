"""The compiled code is the readable code: kernels give the goldens' bits when nothing is compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support import suites

pytestmark = pytest.mark.slow

RUN = """
import sys
sys.modules["numba"] = None  # any attempt to compile fails
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/test_bits.py::test_single_operators"]))
"""


def test_single_operators_without_compiling() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=suites.ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "\n2 passed in " in done.stdout  # over all models, with calls whole and cut
    assert len(json.loads((suites.ROOT / "golden" / "singleop" / "index.json").read_text("utf-8"))) == 209
