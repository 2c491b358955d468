"""Arrays to and from an `.npz` file without pickling: strings travel as lengths and bytes.

The same convention is written down once more in `child.py`, which may import nothing of this package.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tflq.runtimes.runtime import Array


def pack(name: str, value: Array) -> dict[str, Array]:
    """Entries that carry `value` under `name`. Arrays of strings (object or S) take three of them."""
    if value.dtype.kind not in "OSU":
        return {name: np.asarray(value, order="C")}
    words = [_as_bytes(word) for word in value.ravel()]
    return {
        name + ".lengths": np.array([len(word) for word in words], np.int64),
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": np.array(value.shape, np.int64),
    }


def unpack(name: str, entries: Mapping[str, Array]) -> Array | None:
    """The array that `pack` stored under `name`; None where there is none. Strings come back as bytes objects."""
    if name in entries:
        return entries[name]
    if name + ".lengths" not in entries:
        return None
    ends = np.cumsum(entries[name + ".lengths"])
    raw = entries[name + ".bytes"].tobytes()
    words = np.empty(len(ends), object)
    words[:] = [raw[end - length : end] for end, length in zip(ends, entries[name + ".lengths"], strict=True)]
    return words.reshape(tuple(entries[name + ".shape"]))


def _as_bytes(word: object) -> bytes:
    return word.encode() if isinstance(word, str) else bytes(word)  # type: ignore[call-overload]
