"""Memory lent to callers as arrays, and whether any of them is still held."""

from __future__ import annotations

import weakref

import numpy as np

from tflq.errors import StateError
from tflq.kernels.kernel import Array


class _Lent:
    """The base of a lent array. Slices keep their array alive and the array keeps this, so that it is there as long as
    anybody can see the memory.
    """

    def __init__(self, array: Array) -> None:
        self._array, self.__array_interface__ = array, array.__array_interface__


class Lending:
    """The arrays of one interpreter that `tensor()` has given away."""

    def __init__(self) -> None:
        self._lent: list[weakref.ref[_Lent]] = []

    def lend(self, array: Array) -> Array:
        """Return a view of `array` that is counted until nobody holds it any more. Strings are not counted."""
        if array.dtype.hasobject:
            return array
        lent = _Lent(array)
        self._lent.append(weakref.ref(lent))
        return np.asarray(lent)

    @property
    def is_over(self) -> bool:
        """True if no array is held any more."""
        self._lent = [lent for lent in self._lent if lent() is not None]
        return not self._lent

    def check(self) -> None:
        """Raise while an array is held.

        Source: LiteRT 2.3 interpreter.py Interpreter._ensure_safe.
        """
        if self._lent and not self.is_over:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or "
                "slice: hold the function that tensor() returned, not the array that it gives, or copy the array"
            )
