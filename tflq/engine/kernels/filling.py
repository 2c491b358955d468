"""Evals that fill arrays made for them, and so can be bound to arrays once and called many times.

Most kernels make one array of a shape and type known from prepare. Written as a `filling`, such an eval does not
compute: it gives a call that does, with every view of its operands already taken. Run once, that is an eval like any
other; a plan that runs often binds the call to arrays that stay where they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflq.engine.kernels.kernel import Shape
from tflq.typing import Array

#: Reads its inputs and fills its output whenever it is called. In a functools.partial NumPy has nothing to warn of,
#: in anything else it may have.
Call = Callable[[], object]
#: Shape and type of an output.
Form = tuple[Shape, Any]


class Filling:
    """An eval of one output. `bind(data, out, *inputs)` gives the call that fills `out`, `of(data, *inputs)` the shape
    and the type of `out`.

    `once(data, *inputs)` gives the output of a single run, where that is done sooner than a call is made.

    The owner of the call keeps inputs and output C-contiguous and their shapes unchanged: all arrays that bind derives
    from them must be views, so that the call sees their contents when it runs.
    """

    def __init__(
        self, bind: Callable[..., Call], of: Callable[..., Form], once: Callable[..., Array] | None = None
    ) -> None:
        self._bind, self._of, self._once = bind, of, once
        functools.update_wrapper(self, bind)

    def __call__(self, data: Any, *inputs: Array | None) -> Array:
        """Return the output, a fresh array."""
        if self._once is not None:
            return np.asarray(self._once(data, *inputs))
        out = np.empty(*self._of(data, *inputs))
        self._bind(data, out, *inputs)()
        return out

    def bound(self, data: Any, places: Sequence[Array], *inputs: Array | None) -> Call | None:
        """Return the call that fills the one array in `places`; None if the output has another shape or type."""
        (place,) = places
        fits = self._of(data, *inputs) == (place.shape, place.dtype)
        return self._bind(data, place, *inputs) if fits else None


class Fillings:
    """An eval of several outputs: as Filling, with a sequence of arrays as `out`, and the `Form` of each from `of`."""

    def __init__(self, bind: Callable[..., Call], of: Callable[..., list[Form]]) -> None:
        self._bind, self._of = bind, of
        functools.update_wrapper(self, bind)

    def __call__(self, data: Any, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the outputs, fresh arrays."""
        outs = tuple(np.empty(*form) for form in self._of(data, *inputs))
        self._bind(data, outs, *inputs)()
        return outs

    def bound(self, data: Any, places: Sequence[Array], *inputs: Array | None) -> Call | None:
        """Return the call that fills these arrays, one for each output; None if they have other shapes or types."""
        fits = self._of(data, *inputs) == [(place.shape, place.dtype) for place in places]
        return self._bind(data, places, *inputs) if fits else None


class Updating(Fillings):
    """An eval of several outputs that also changes variables: the inputs at `positions`, in place.

    `bind` reads and writes their arrays, which no other input shares. Run once, the eval changes copies, which it gives
    after the outputs.
    """

    def __init__(self, bind: Callable[..., Call], of: Callable[..., list[Form]], positions: tuple[int, ...]) -> None:
        super().__init__(bind, of)
        self._positions = positions

    def __call__(self, data: Any, *inputs: Array | None) -> tuple[Array, ...]:
        """Return the outputs and the new values of the variables, fresh arrays."""
        fresh = {position: np.array(inputs[position]) for position in self._positions}
        outs = super().__call__(data, *(fresh.get(position, x) for position, x in enumerate(inputs)))
        return (*outs, *fresh.values())


def filling(
    of: Callable[..., Form], once: Callable[..., Array] | None = None
) -> Callable[[Callable[..., Call]], Filling]:
    """Make an eval of a function (data, out, *inputs) that gives a Call."""
    return lambda bind: Filling(bind, of, once)


def fillings(of: Callable[..., list[Form]]) -> Callable[[Callable[..., Call]], Fillings]:
    """Make an eval of a function (data, outs, *inputs) that gives a Call."""
    return lambda bind: Fillings(bind, of)


def updating(of: Callable[..., list[Form]], *positions: int) -> Callable[[Callable[..., Call]], Updating]:
    """Make an eval of a function (data, outs, *inputs) that gives a Call, which changes the inputs at `positions`."""
    return lambda bind: Updating(bind, of, positions)


def in_turn(calls: Sequence[Call]) -> Call:
    """Return one call for several, made in order."""
    if len(calls) == 1:
        return calls[0]

    def call() -> None:
        for each in calls:
            each()

    return call
