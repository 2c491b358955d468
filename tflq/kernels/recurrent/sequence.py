"""Loops over time: all batches step together where time comes first, one after the other where the batch does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflq.kernels.kernel import Array

#: step(x, aux, states, first row of the states) -> output rows; the states are changed in place
Step = Callable[[Array, Array | None, Sequence[Array], int], Array]


def run(
    step: Step,
    x: Array,
    aux: Array | None,
    states: Sequence[Array],
    out: Array,
    *,
    time_major: bool,
    backwards: bool = False,
) -> None:
    """Feed `x` (time, batch, depth), or (batch, time, depth), to `step` and fill `out`, laid out alike.

    `states` are (batch, size) each. `backwards` takes the last moment first.
    """
    moments = range(x.shape[0 if time_major else 1])
    order = tuple(reversed(moments) if backwards else moments)
    if time_major:
        for t in order:
            out[t] = step(x[t], None if aux is None else aux[t], states, 0)
        return
    for b in range(x.shape[0]):
        rows = [state[b : b + 1] for state in states]
        for t in order:
            out[b, t] = step(x[b, t : t + 1], None if aux is None else aux[b, t : t + 1], rows, b)[0]


def state_of(value: Array | None, columns: int) -> Array:
    """A writable copy of a state tensor as (batch, columns)."""
    assert value is not None
    return np.array(value).reshape(-1, columns)
