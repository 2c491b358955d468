"""Hostile variants of models: none crashes, hangs, floods the memory or ends in an error that is none of tflq's."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from modelfuzz.variants import Variant, variant
from modelfuzz.watching import watch

TOOL = Path(__file__).parents[2] / "tools" / "fuzz_models.py"
#: Variants that run with every full run of the tests, and where their random numbers begin.
COUNT, SEED = 5000, 1


@pytest.mark.slow
def test_thousands_of_variants_end_as_they_may() -> None:
    words = [sys.executable, str(TOOL), "--count", str(COUNT), "--seed", str(SEED), "--jobs", "2", "--seconds", "120"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"0 found in {COUNT} variants" in done.stdout
    ran = re.search(r"\bran (\d+)", done.stdout)
    assert ran is not None
    assert int(ran[1]) > COUNT // 10, done.stdout  # variants that are all refused would say nothing


def test_a_variant_is_the_same_every_time() -> None:
    for number in range(12):
        assert variant(3, number) == variant(3, number)
        assert variant(3, number).data() == variant(3, number).data()
    assert len({variant(3, number).data() for number in range(12)}) > 8


def _fault(made: Variant, data: bytes) -> str:
    """A subject with every fault."""
    if made.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if made.number == 2:
        time.sleep(1000)
    if made.number == 3:
        return f"ran with {len(bytes(64 << 20) + b'x')}"
    return "ran"


@pytest.mark.slow
def test_every_fault_is_seen_and_the_rest_goes_on() -> None:
    variants = [Variant(number, str(TOOL), (), ()) for number in range(5)]
    ends = [end for _, end in watch(_fault, variants, seconds=10, most_bytes=32 << 20)]
    assert ends[:3] == ["ran", "!crash: SIGKILL", "!hang"]
    assert ends[3].startswith("!memory: ")
    assert ends[4] == "ran"
