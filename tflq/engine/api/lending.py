"""Memory lent to callers as arrays, and the check whether any of them is still in use."""

from __future__ import annotations

import weakref

import numpy as np

from tflq.errors import StateError
from tflq.typing import Array


class _Lent:
    """The base of a lent array. Slices keep their array alive, and the array keeps this object alive."""

    def __init__(self, array: Array) -> None:
        self._array, self.__array_interface__ = array, array.__array_interface__


class Lending:
    """The arrays of one interpreter that `tensor()` has lent."""

    def __init__(self) -> None:
        self._lent: list[weakref.ref[_Lent]] = []

    def lend(self, array: Array) -> Array:
        """Return a view of `array` that counts as lent until its last reference is gone. Strings do not count."""
        if array.dtype.hasobject:
            return array
        lent = _Lent(array)
        self._lent.append(weakref.ref(lent))
        return np.asarray(lent)

    @property
    def is_over(self) -> bool:
        """True if no lent array is in use."""
        self._lent = [lent for lent in self._lent if lent() is not None]
        return not self._lent

    def check(self) -> None:
        """Raise if a lent array is still in use.

        Source: LiteRT 2.3 interpreter.py Interpreter._ensure_safe.
        """
        if self._lent and not self.is_over:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or "
                "slice: keep the function that tensor() returned, not its array, or copy the array"
            )
