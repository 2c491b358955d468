"""Long calls of compiled code in pieces, so that a run can be interrupted between two of them.

Python learns of Ctrl-C only when a compiled function returns. Functions whose calls can be long therefore declare along
which axes they may be cut. Pieces are computed in order, so that sums which run on from one piece to the next keep
their order, and no bit depends on the cuts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Compiled
from tflq.interrupts import checkpoint
from tflq.typing import Array

#: Largest number of passes through an innermost loop in one call that can be cut: about a tenth of a second.
LONGEST = 1 << 26
#: Largest number of multiply-accumulates of floats in one product of matrices: about as long.
LONGEST_PRODUCT = 1 << 31

#: Passes through the innermost loop, from a call's arguments; or their number for each element of the first array
#: that is cut.
Work = Callable[..., int] | int
Block = Mapping[str, slice]


class InPieces(Compiled[..., None]):
    """A compiled function without a result that splits a long call into several short ones."""

    def __init__(
        self,
        function: Callable[..., None],
        work: Work,
        step: int | str,
        axes: Mapping[str, str],
        frees_threads: bool = False,
    ) -> None:
        super().__init__(function)
        self.frees_threads = frees_threads
        code = function.__code__
        parameters = code.co_varnames[: code.co_argcount]
        self._axes = [(parameters.index(name), letters) for name, letters in axes.items()]
        self._step = step if isinstance(step, int) else None
        self._period = 0 if isinstance(step, int) else parameters.index(step)
        self._first = self._axes[0][0]
        self._work = work if callable(work) else None
        self._each = 1 if callable(work) else work

    def __call__(self, *args: Any) -> None:
        """Run it, in pieces if it takes long."""
        call = self._call or self.resolve()
        work = self._work_of(args)
        if work <= LONGEST:
            call(*args)
        else:
            _each(functools.partial(call, *piece) for piece in self._pieces(args, work))

    def bound(self, *args: Any) -> Callable[[], None]:
        """Bind the call with these arguments; whether it is cut into pieces is decided now."""
        work = self._work_of(args)
        if work > LONGEST:
            return functools.partial(_each, [self._bound_call(tuple(piece)) for piece in self._pieces(args, work)])
        return self._bound_call(args)

    def _work_of(self, args: tuple[Any, ...]) -> int:
        return args[self._first].size * self._each if self._work is None else self._work(*args)

    def _pieces(self, args: tuple[Any, ...], work: int) -> Iterator[list[Any]]:
        letters = self._axes[0][1]
        extents = args[self._first].shape[: len(letters)]
        step = self._step or len(args[self._period])
        for slices in blocks(extents, LONGEST * prod(extents) // work, step):
            block = dict(zip(letters, slices, strict=True))
            piece = list(args)
            for place, axes in self._axes:
                piece[place] = _part(args[place], [block[letter] for letter in axes])
            yield piece


def in_pieces(
    work: Work = 1, /, *, step: int | str = 1, frees_threads: bool = False, **axes: str
) -> Callable[[Compiled[..., None]], InPieces]:
    """Declare that calls of a compiled function may be cut, and how. Put it above `@compiled`.

    `axes` gives a letter for each axis that may be cut, by parameter: `@in_pieces(x="nr", out="nr", scale="r")` for x
    and out of (N, R, ...) and scale of (R,). The first parameter is an array that has all the axes, the outermost
    first. In a piece, arrays are cut; a number is that of its first row, column ...; a flag is true in the first piece
    only; anything else has a method `part` that takes a slice for each axis. The innermost axis is cut at multiples of
    `step`, or of the length of the parameter of that name. Other
    threads of Python run during a call that `frees_threads`.
    """
    return lambda function: InPieces(function.python, work, step, axes, frees_threads)


def _each(calls: Iterable[Callable[[], None]]) -> None:
    for call in calls:
        call()
        checkpoint()


class InSteps(Compiled[..., None]):
    """A compiled function without a result that runs its own lines as Python where a call is long."""

    def __init__(self, function: Callable[..., None], work: Callable[..., int]) -> None:
        super().__init__(function)
        self._work = work

    def __call__(self, *args: Any) -> None:
        """Run it; the functions that it calls are compiled either way."""
        self.bound(*args)()

    def bound(self, *args: Any) -> Callable[[], None]:
        """Bind the call with these arguments; whether its lines run as Python is decided now."""
        is_long = self._work(*args) > LONGEST
        return functools.partial(self.python, *args) if is_long else self._bound_call(args)


def in_steps(work: Callable[..., int]) -> Callable[[Compiled[..., None]], InSteps]:
    """Declare that a compiled function has few lines and its callees take the time. Put it above `@compiled`."""
    return lambda function: InSteps(function.python, work)


def most(each: int = 1) -> int:
    """Return how many passes, each of `each` units of work, one call makes at most."""
    return LONGEST // max(1, each)


def ranges(count: int, each: int = 1) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of the pieces of a loop over range(count) whose passes take `each` units of work."""
    return ((part.start, part.stop) for (part,) in blocks((count,), most(each)))


def _part(value: Any, slices: Sequence[slice]) -> Any:
    """Return the part of an argument that a piece takes."""
    if isinstance(value, np.ndarray):
        return value[tuple(slices)]
    (start,) = (s.start for s in slices[:1])
    if isinstance(value, (bool, np.bool_)):
        return bool(value and start == 0)
    return value + start if isinstance(value, (int, np.integer)) else value.part(*slices)


def blocks(extents: Sequence[int], most: int, step: int = 1) -> Iterator[tuple[slice, ...]]:
    """Yield blocks of at most `most` elements that together are an array of those extents.

    In order, and each contiguous in memory where the array is. The innermost axis is cut at multiples of `step`.
    """
    axis = len(extents) - 1
    while axis > 0 and prod(extents[axis:]) <= most:
        axis -= 1
    inner = extents[axis + 1 :]
    step = max(1, most // max(1, prod(inner))) if inner else max(step, most - most % step)
    rest = tuple(slice(0, extent) for extent in inner)
    for outer in np.ndindex(*extents[:axis]):
        for start in range(0, extents[axis], step):
            yield (*(slice(i, i + 1) for i in outer), slice(start, min(start + step, extents[axis])), *rest)


def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
    """Multiply (..., R, K) by (..., K, N) as np.matmul, by rows of `x` if it is long. Leading dimensions broadcast."""
    longest = LONGEST_PRODUCT if x.dtype.kind == "f" else LONGEST
    if x.size * y.shape[-1] <= longest and y.size * x.shape[-2] <= longest:
        return np.asarray(np.matmul(x, y, out=out))
    lead = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    shape = (*lead, x.shape[-2], y.shape[-1])
    if out is None:
        out = np.empty(shape, np.result_type(x, y))
    left, right = np.broadcast_to(x, (*lead, *x.shape[-2:])), np.broadcast_to(y, (*lead, *y.shape[-2:]))
    for block in blocks(shape[:-1], longest // max(1, x.shape[-1] * y.shape[-1])):
        np.matmul(left[block], right[block[:-1]], out=out[block])
    return out
