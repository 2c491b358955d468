"""Evals that fill an array made for them, and so can be bound to arrays once and called many times.

Most kernels make one array of a shape and type known from prepare. Written as a `filling`, such an eval does not
compute: it gives a call that does, with every view of its operands already made. Run once, that is an eval like any
other; a plan that runs often binds the call to arrays that stay where they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflq.kernels.kernel import Array, Shape

#: Reads its inputs and fills its output whenever it is called. In a functools.partial NumPy has nothing to warn of,
#: in anything else it may have.
Call = Callable[[], object]


class Filling:
    """An eval of one output. `bind(data, out, *inputs)` gives the call that fills `out`, `of(data, *inputs)` the shape
    and the type of `out`.

    `once(data, *inputs)` gives the output of a single run, where that is done sooner than a call is made.

    Whoever keeps the call sees to it that inputs and output are C-contiguous and keep their shapes: what bind makes of
    them must be views then, so that the call sees what they hold when it runs.
    """

    def __init__(
        self, bind: Callable[..., Call], of: Callable[..., tuple[Shape, Any]], once: Callable[..., Array] | None = None
    ) -> None:
        self.bind, self.of, self._once = bind, of, once
        functools.update_wrapper(self, bind)

    def __call__(self, data: Any, *inputs: Array | None) -> Array:
        """The output, a fresh array."""
        if self._once is not None:
            return np.asarray(self._once(data, *inputs))
        out = np.empty(*self.of(data, *inputs))
        self.bind(data, out, *inputs)()
        return out


def filling(
    of: Callable[..., tuple[Shape, Any]], once: Callable[..., Array] | None = None
) -> Callable[[Callable[..., Call]], Filling]:
    """Make an eval of a function (data, out, *inputs) that gives a Call."""
    return lambda bind: Filling(bind, of, once)


def in_turn(calls: Sequence[Call]) -> Call:
    """One call for several, made in order."""
    if len(calls) == 1:
        return calls[0]

    def call() -> None:
        for each in calls:
            each()

    return call
