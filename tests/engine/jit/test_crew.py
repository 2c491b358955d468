"""Calls whose parts several threads make: every part once, exceptions, and helpers that are not there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from support.suites import ROOT
from tflq.engine.jit import crew
from tflq.engine.jit.compiled import Int, Real, compiled, compiling_is_off, unlock
from tflq.engine.jit.crew import Crew
from tflq.engine.jit.instructions import add, look, put, swap
from tflq.engine.jit.machine_calls import MachineCall
from tflq.typing import Array

pytestmark = pytest.mark.skipif(compiling_is_off(), reason="there are no crews where the source runs as Python")


@unlock
@compiled
def _filled(x: Array, sizes: tuple[Int, Int], half: Real, narrow: Any, is_negative: bool, out: Array) -> None:
    for r in range(x.shape[0]):
        for c in range(sizes[0]):
            value = x[r, c] * half + sizes[1] + narrow
            out[r, c] += -value if is_negative else value


@unlock
@compiled
def _not_negative(x: Array, out: Array) -> None:
    for i in range(x.size):
        if x[i] < 0:
            raise ValueError("negative")
        out[i] += x[i]


def parts_of(function: Any, count: int, x: Array, out: Array, *rest: Any) -> list[MachineCall]:
    bounds = np.linspace(0, len(x), count + 1).astype(int)
    return [function.bound(x[a:b], *rest, out[a:b]) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_part_is_made_once_in_every_call(helpers: int) -> None:
    together, calls, outs = Crew(helpers), [], []
    random = np.random.default_rng(1)
    for count in (2, 3, 7):
        for is_negative in (False, True):
            x, out = random.integers(-99, 99, (50, 6)).astype(np.float64)[:, ::2], np.zeros((50, 3))
            rest = ((3, -2), 0.5, np.float32(0.25), is_negative)
            calls.append(together.shared(partial(pytest.fail), parts_of(_filled, count, x, out, *rest)))
            outs.append((out, (x * 0.5 - 1.75) * (-1 if is_negative else 1)))
    for times in range(1, 200):
        together.assemble()
        for call in calls:
            call()
        for out, once in outs:
            np.testing.assert_array_equal(out, sum([once] * times))


@pytest.mark.parametrize("bad", [3, 97])
def test_what_a_part_raises_is_raised_where_the_call_was_made(bad: int) -> None:
    together, x, out = Crew(1), np.arange(100), np.zeros(100, np.int64)
    whole = partial(_not_negative, x, out.copy())
    call = together.shared(whole, parts_of(_not_negative, 2, x, out))
    for _ in range(20):
        together.assemble()
        call()
        x[bad] = -1
        with pytest.raises(ValueError, match="negative"):
            call()
        x[bad] = bad
    assert out[bad] == bad * 20


def test_without_helpers_the_caller_makes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    together, x, out = Crew(2), np.arange(100), np.zeros(100, np.int64)
    call = together.shared(partial(pytest.fail), parts_of(_not_negative, 3, x, out))
    together.assemble()
    call()
    assert out.tolist() == list(range(100))


def test_helpers_end_with_the_crew() -> None:
    before = set(threading.enumerate())
    together, x, out = Crew(2), np.arange(100), np.zeros(100, np.int64)
    call: Callable[[], object] | None = together.shared(partial(pytest.fail), parts_of(_not_negative, 3, x, out))
    together.assemble()
    helpers = set(threading.enumerate()) - before
    assert len(helpers) == 2
    del together, call
    for helper in helpers:
        helper.join(60)
        assert not helper.is_alive()


def test_a_helper_that_takes_long_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no patience every wait goes through a sleep, and helpers sleep between calls."""
    monkeypatch.setattr(crew, "_PATIENCE", 1)
    together, x, out = Crew(1), np.arange(4000), np.zeros(4000, np.int64)
    call = together.shared(partial(pytest.fail), parts_of(_not_negative, 64, x, out))
    for _ in range(100):
        together.assemble()
        call()
    np.testing.assert_array_equal(out, x * 100)


FORKED = """
    import os, sys
    import numpy as np
    import tflq
    it = tflq.Interpreter(sys.argv[1], num_threads=2)
    it.allocate_tensors()
    def outcome():
        rng = np.random.default_rng(0)
        for d in it.get_input_details():
            it.set_tensor(d["index"], (rng.random(d["shape"]) * 100).astype(d["dtype"]))
        for _ in range(3):
            it.invoke()
        return b"".join(it.get_tensor(d["index"]).tobytes() for d in it.get_output_details())
    expected = outcome()
    child = os.fork()
    if child == 0:
        os._exit(0 if outcome() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert outcome() == expected
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_computes_and_both_end() -> None:
    model = ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"
    script = textwrap.dedent(FORKED).replace("import tflq", "import tflq\nfrom tflq.engine.jit import pieces", 1)
    script = script.replace("it = ", "pieces.SMALLEST = 64\nit = ", 1)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(model)], capture_output=True, text=True, timeout=120
    )
    assert ran.stdout == "done\n", ran.stderr


@compiled
def _each(words: Array) -> Int:
    first = add(words, 0, 5, 0)
    second = put(words, 1, 7, 0)
    swapped = swap(words, 2, 3, 11)
    refused = swap(words, 2, 3, 12)
    return first * 1000 + second * 100 + swapped * 10 + refused + look(words, 0, 0, 0) * 10000


def test_instructions_are_what_python_says() -> None:
    words, again = np.array([1, 2, 3]), np.array([1, 2, 3])
    source: Any = _each.python
    plain = FunctionType(source.__code__, {each.python.__name__: each.python for each in (add, put, swap, look)})
    assert _each(words) == plain(again) == 61210
    assert words.tolist() == again.tolist() == [6, 7, 11]
