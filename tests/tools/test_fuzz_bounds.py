"""Every operator on hostile models, with bounds checks in compiled code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opfuzz import hostile
from opfuzz.draw import Draw
from opfuzz.families import BESIDES, SPECS

pytestmark = pytest.mark.slow

TOOLS = Path(__file__).parents[2] / "tools"
#: Models of each operator; with machine code already cached they take some ten seconds.
COUNT, SEED = 5, 1

PROBE = """
import sys
import numpy as np
from fuzz_bounds import is_outside
from tflq.engine.numerics.tables import look_up_8bit_into

def found(call):
    try:
        call()
    except IndexError as error:
        return is_outside(error)

codes, out = np.array([0, 200], np.uint8), np.zeros(2, np.int8)
print(found(lambda: look_up_8bit_into(np.zeros(256, np.int8), codes, out)))
print(found(lambda: look_up_8bit_into(np.zeros(4, np.int8), codes, out)))
print(found(lambda: np.zeros(4)[np.array([9])]))
"""


def run(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_") or "CACHE" in name}
    paths = os.pathsep.join([str(TOOLS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**clean, "PYTHONPATH": paths, **settings}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=900, env=environment, check=False
    )


def test_nothing_reaches_outside_of_an_array() -> None:
    words = (str(TOOLS / "fuzz_bounds.py"), "--count", str(COUNT), "--seed", str(SEED))
    done = run(*words, NUMBA_BOUNDSCHECK="1")
    assert done.returncode == 0, done.stderr[-4000:]
    ends = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", done.stdout)}
    assert sum(ends.values()) == COUNT * len({**SPECS, **BESIDES})
    assert ends["ran"] > 0.4 * sum(ends.values())
    assert ends["ModelError"] > 0.05 * sum(ends.values())


@pytest.mark.parametrize("setting", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_what_reaches_outside_is_found(setting: str) -> None:
    """In compiled code; not what NumPy itself checks."""
    done = run("-c", PROBE, **{setting: "1"})
    assert done.stdout.split() == ["None", "True", "False"], done.stderr[-2000:]


def test_machine_code_without_bounds_checks_is_refused() -> None:
    assert run(str(TOOLS / "fuzz_bounds.py")).returncode == 2


@pytest.mark.parametrize("change", dict.fromkeys(hostile.CHANGES), ids=lambda change: change.__name__)
def test_every_change_changes_models(change: object) -> None:
    assert callable(change)
    changed = 0
    for op in ("CONV_2D", "GATHER", "PAD", "UNIDIRECTIONAL_SEQUENCE_LSTM", "SEGMENT_SUM"):
        for number in range(8):
            draw = Draw(np.random.default_rng([7, number]))
            case = SPECS[op](draw, op)
            changed += str(change(draw, case)) != str(case)
    assert changed >= 10


@pytest.mark.parametrize("op", sorted({**SPECS, **BESIDES}))
def test_changes_go_on_top_of_each_other(op: str) -> None:
    """Whatever the ones before have left."""
    spec = {**SPECS, **BESIDES}[op]
    for number in range(20):
        draw = Draw(np.random.default_rng([8, number]))
        case = spec(draw, op)
        for _ in range(12):
            case = draw.pick(hostile.CHANGES)(draw, case)


def test_hostile_cases_are_the_same_whenever_they_are_drawn() -> None:
    for number in range(20):
        first, second = (Draw(np.random.default_rng([9, number])) for _ in range(2))
        a, b = (hostile.hostile(draw, SPECS["CONV_2D"](draw, "CONV_2D")) for draw in (first, second))
        assert str(a) == str(b)
