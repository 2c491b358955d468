"""Loops over time: all batches step together where time comes first, one after the other where the batch does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tflq.typing import Array


class Cell(Protocol):
    """The steps of a recurrent operator."""

    @property
    def by_row(self) -> object:
        """None if `run_rows` cannot serve."""
        ...

    def step(self, x: Array, aux: Array | None, states: Sequence[Array], row: int) -> Array:
        """Run one step of `x` and `aux` (B, depth); return output rows. The states change from row `row` on."""
        ...

    def run_rows(self, x: Array, states: Sequence[Array], out: Array) -> None:
        """Run all steps of `x` (N, T, depth), one batch after the other; fill `out` (N, T, units)."""
        ...


def run(
    cell: Cell,
    x: Array,
    aux: Array | None,
    states: Sequence[Array],
    out: Array,
    *,
    time_major: bool,
    backwards: bool = False,
) -> None:
    """Feed `x` (time, batch, depth), or (batch, time, depth), to `cell` and fill `out`, laid out alike.

    `states` are (batch, size) each. `backwards` takes the last moment first.
    """
    if aux is None and cell.by_row is not None and x.size and (not time_major or x.shape[1] == 1):
        order = slice(None, None, -1 if backwards else 1)
        batch_first = [a.swapaxes(0, 1) if time_major else a for a in (x, out)]
        rows_out = np.empty(batch_first[1].shape, out.dtype)
        cell.run_rows(np.ascontiguousarray(batch_first[0][:, order]), states, rows_out)
        batch_first[1][...] = rows_out[:, order]
        return
    moments = range(x.shape[0 if time_major else 1])
    order_of = tuple(reversed(moments) if backwards else moments)
    if time_major:
        for t in order_of:
            out[t] = cell.step(x[t], None if aux is None else aux[t], states, 0)
        return
    for b in range(x.shape[0]):
        rows = [state[b : b + 1] for state in states]
        for t in order_of:
            out[b, t] = cell.step(x[b, t : t + 1], None if aux is None else aux[b, t : t + 1], rows, b)[0]


def state_of(value: Array | None, columns: int) -> Array:
    """Return a writable copy of a state tensor as (batch, columns)."""
    assert value is not None
    return np.array(value).reshape(-1, columns)
