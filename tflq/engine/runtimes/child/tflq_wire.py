"""Arrays on their way to and from the child process, in `.npz` files without pickling: strings travel as lengths and
bytes. The parent uses this module, too (runtime.py)."""
# ruff: noqa: B905 (Python 3.8 has no strict zip)

from __future__ import annotations

from typing import Any, Dict  # noqa: UP035

import numpy as np


def carry(step: Any, latest: Any) -> Any:
    """Return the inputs of a step that come from outputs of earlier steps: see tflq.engine.runtimes.runtime.Invocation.

    Raises:
        ValueError: There is no output of that name.
    """
    names = [*step["carried"], *(output for output, _ in step["greedy"].values())]
    missing = [name for name in names if latest.get(name) is None]
    if missing:
        raise ValueError(f"no earlier step has an output {missing[0]!r} that this one can take")
    given = {name: np.asarray(latest[name]) for name in step["carried"]}
    for name, (output, shape) in step["greedy"].items():
        scores = np.asarray(latest[output])
        given[name] = np.full(shape, scores.reshape(-1, scores.shape[-1])[-1].argmax(), np.int32)
    return given


def pack(name: str, value: Any) -> Dict[str, Any]:  # noqa: UP006
    """Return the entries for `value` under `name`. Arrays of strings (object or S) need three."""
    if value.dtype.kind not in "OSU":
        return {name: np.asarray(value, order="C")}
    words = [word.encode() if isinstance(word, str) else bytes(word) for word in value.ravel()]
    lengths, shape = (np.array(sizes, np.int64) for sizes in ([len(word) for word in words], value.shape))
    return {
        name + ".lengths": lengths,
        name + ".bytes": np.frombuffer(b"".join(words), np.uint8),
        name + ".shape": shape,
    }


def unpack(name: str, entries: Any) -> Any:
    """Return the array that `pack` stored under `name`. Strings come back as bytes objects."""
    if name in entries:
        return entries[name]
    ends = np.cumsum(entries[name + ".lengths"])
    raw = entries[name + ".bytes"].tobytes()
    words = np.empty(len(ends), object)
    words[:] = [raw[end - length : end] for end, length in zip(ends, entries[name + ".lengths"])]
    return words.reshape(tuple(entries[name + ".shape"]))
