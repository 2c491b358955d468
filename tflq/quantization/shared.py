"""Values that the candidates of a recipe have in common, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from typing import Any, TypeVar, cast

import numpy as np

T = TypeVar("T")


class Shared:
    """Values by the inputs they were computed from, kept as long as one model is quantized.

    Keys name content: `constants` is a digest of the values of a model's constants, so candidates share equal content
    however it came about. All models of one such object differ only in their constants.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._digests: dict[int, tuple[object, bytes]] = {}  # by identity of the constants, which live as long

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; compute it if there is none yet."""
        if key not in self._values:
            self._values[key] = make()
        return cast(T, self._values[key])

    def constants(self, values: Mapping[int, Any]) -> bytes:
        """Return a digest of a model's constants."""
        known = self._digests.get(id(values))
        if known is None:
            digest = sha256()
            for tensor in sorted(values):
                array = np.ascontiguousarray(values[tensor])
                digest.update(f"{tensor} {array.dtype} {array.shape} ".encode())
                digest.update(array.data if array.size else b"")
            known = self._digests[id(values)] = values, digest.digest()
        return known[1]
