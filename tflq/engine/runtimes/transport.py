"""Arrays to and from an `.npz` file without pickling: strings travel as lengths and bytes.

`child.py`, which must not import this package, implements the same convention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tflq.errors import InputError
from tflq.typing import Array


def pack(name: str, value: Array) -> dict[str, Array]:
    """Return the entries for `value` under `name`. Arrays of strings (object or S) need three."""
    if value.dtype.kind not in "OSU":
        return {name: np.asarray(value, order="C")}
    words = [_as_bytes(word) for word in value.ravel()]
    return {
        name + ".lengths": np.array([len(word) for word in words], np.int64),
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": np.array(value.shape, np.int64),
    }


def unpack(name: str, entries: Mapping[str, Array]) -> Array | None:
    """Return the array that `pack` stored under `name`; None if there is none. Strings come back as bytes objects.

    Raises:
        InputError: The entries of an array of strings contradict each other.
    """
    if name in entries:
        return entries[name]
    if name + ".lengths" not in entries:
        return None
    kinds = (".lengths", np.int64), (".shape", np.int64), (".bytes", np.uint8)
    lengths, shape, raw = (entries.get(name + kind, np.empty(0)) for kind, _ in kinds)
    if any(part.ndim != 1 or part.dtype != kind for part, (_, kind) in zip((lengths, shape, raw), kinds, strict=True)):
        raise InputError("entries .lengths, .shape and .bytes are not an array of strings", name=name)
    if min(lengths, default=0) < 0 or sum(lengths.tolist()) != raw.size or math.prod(shape.tolist()) != lengths.size:
        raise InputError("entries .lengths, .shape and .bytes contradict each other", name=name)
    data = raw.tobytes()
    words = np.empty(len(lengths), object)
    words[:] = [data[end - length : end] for end, length in zip(np.cumsum(lengths), lengths, strict=True)]
    return words.reshape(tuple(shape))


def _as_bytes(word: object) -> bytes:
    return word.encode() if isinstance(word, str) else bytes(word)  # type: ignore[call-overload]
