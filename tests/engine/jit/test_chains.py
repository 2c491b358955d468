"""Several calls of machine code made by one call from Python."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.jit.compiled import Int, compiled, compiling_is_off, writes
from tflq.engine.jit.native import MachineChain, chained
from tflq.typing import Array

pytestmark = pytest.mark.skipif(compiling_is_off(), reason="nothing is compiled")


@writes("out")
@compiled
def add_number(out: Array, number: Int) -> None:
    """Add a number to each element, unless it is negative.

    This function guarantees: all indices come from the shape of `out`.

    Raises:
        ValueError: It is negative.
    """
    if number < 0:
        raise ValueError("a negative number")
    for i in range(out.size):
        out[i] = out[i] * 2 + number


def test_calls_are_made_in_order_and_others_stay_between_them() -> None:
    out, seen = np.zeros(3, np.int64), []
    calls = [add_number.bound(out, 1), add_number.bound(out, 2), lambda: seen.append(out[0]), add_number.bound(out, 3)]
    chains = chained(calls)
    assert [position for position, _ in chains] == [0, 2, 3]
    assert isinstance(chains[0][1], MachineChain)
    for _, call in chains:
        call()
    assert (seen, out.tolist()) == ([4], [11, 11, 11])


def test_a_call_that_fails_ends_the_chain_and_is_named() -> None:
    out = np.zeros(1, np.int64)
    ((_, chain),) = chained([add_number.bound(out, n) for n in (1, 2, -1, 4)])
    assert isinstance(chain, MachineChain)
    with pytest.raises(ValueError, match="a negative number"):
        chain()
    assert (chain.failed, out.tolist()) == (2, [4])


def test_long_chains_are_cut() -> None:
    """Python learns of Ctrl-C between them."""
    out = np.zeros(1, np.int64)
    chains = chained([add_number.bound(out, 0)] * 200)
    assert [position for position, _ in chains] == [0, 64, 128, 192]
    assert chained([]) == []
