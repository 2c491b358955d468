"""Every script of examples/ runs, and prints what its docstring promises."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support import suites

pytestmark = pytest.mark.slow

EXAMPLES = suites.ROOT / "examples"
PRINTED = {
    "run_under_two_profiles": r"^[1-9]\d* of 500 output codes differ, \d+ of 50 decisions$",
    "explain_a_device": r"^operator \d+ differs, .* most\nlikely: all \d+ .*: litert-ref\+single-rounding$",
    "own_operators": r"^$",  # a file for --kernels
    "quantize_a_network": r"^float 0\.9\d\d\nint8  0\.9\d\d$",
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_it_prints_what_it_promises(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTED[name], done.stdout.rstrip(), re.DOTALL), done.stdout
