"""Files whose numbers nobody would write by accident: odd arrays, keys and JSON values, each wrong in one place."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Ways in which an array may be another one than expected.
ARRAYS: Mapping[str, Callable[[Array], Array]] = {
    "another type": lambda a: a.astype(np.float32) if a.dtype.kind in "iu" else a.astype(np.int16),
    "doubles": lambda a: a.astype(np.float64) + 0.25,
    "halves": lambda a: a.astype(np.float16),
    "NaN": lambda a: np.full(a.shape, np.nan, np.float32),
    "infinite": lambda a: np.full(a.shape, -np.inf, np.float64),
    "beyond": lambda a: np.full(a.shape, 1e300),
    "huge": lambda a: np.full(a.shape, 2**63 - 1, np.int64),
    "unsigned": lambda a: np.full(a.shape, 2**64 - 1, np.uint64),
    "bool": lambda a: np.ones(a.shape, np.bool_),
    "complex": lambda a: a.astype(np.complex128),
    "text": lambda a: np.full(a.shape, "seven"),
    "bytes": lambda a: np.full(a.shape, b"7"),
    "dates": lambda a: np.full(a.shape, np.datetime64("2027-03-31")),
    "durations": lambda a: np.full(a.shape, np.timedelta64(5, "s")),
    "records": lambda a: np.zeros(a.shape, [("a", "i1"), ("b", "f4")]),
    "void": lambda a: np.zeros(a.shape, "V3"),
    "objects": lambda a: np.full(a.shape, {"a": 1}, object),
    "other order": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "empty": lambda a: np.zeros(0, a.dtype),
    "empty in the middle": lambda a: np.zeros((1, 0, 3), a.dtype),
    "scalar": lambda a: np.asarray(a.ravel()[0]),
    "deep": lambda a: a.reshape((1,) * (32 - a.ndim) + a.shape),
    "twice": lambda a: np.concatenate([a.ravel(), a.ravel()]),
    "cut": lambda a: a.ravel()[:-1],
    "turned": lambda a: a.T,
    "columns first": lambda a: np.asfortranarray(a),
}
#: Names of entries that mean something else, or nothing.
KEYS = (
    *("s0_t99999", "s0_t999999999", "s0_t-1", "s0_t0", "s0_t", "s0_in99", "s0_in-1", "s0_out99", "s0_out1500"),
    *("s1_out0", "s-1_out0", "s99999_out0", "s0_in0.lengths", "s0_out0.shape", "t99999", "tensor_-1", "-1", "1e3"),
    *("t" + "9" * 5000, "9" * 5000, f"s{'9' * 5000}_in0", f"s0_in{'9' * 5000}", "tensor_" + "٣" * 5000),
    *("", ".", "t0", "t1", "0", "nan", "s٣_out0", "tflq_golden.npy", "a/b", "labels", "inputs"),
)
#: Values that no place of a document may have.
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**63 - 1, 10**30, -(10**30), 0.5, 1e308, float("nan"), float("-inf")),
    *("", "x", "-1", "NaN", "s0_out0", "../up", "/dev/null", "\x1b[31m", "\ud800", "9" * 400),
    *([], {}, [None], [[1, [2]]], {"a": {"b": [1]}}, [1] * 2000, {"": 1}),
)


def odd_archives(source: Path, folder: Path, chance: random.Random, each: int) -> Iterator[Path]:
    """Write copies of an archive: one entry of another kind, one more entry, one less. `each` kinds for each entry."""
    with np.load(source, allow_pickle=False) as found:
        entries = dict(found)
    numbers = sorted(name for name in entries if name != "tflq_golden")

    def saved(changed: Mapping[str, Array]) -> Path:
        path = folder / "odd.npz"
        path.unlink(missing_ok=True)
        with open(path, "wb") as file:
            np.savez(file, **changed)  # type: ignore[arg-type]
        return path

    for name in numbers:
        for kind in chance.sample(sorted(ARRAYS), min(each, len(ARRAYS))):
            yield saved({**entries, name: ARRAYS[kind](entries[name])})
        yield saved({key: value for key, value in entries.items() if key != name})
    for key in chance.sample(KEYS, min(2 * each, len(KEYS))):
        yield saved({**entries, key: entries[numbers[-1]]})


def odd_documents(document: Any, chance: random.Random, each: int) -> Iterator[bytes]:
    """Yield JSON texts of a document with another value, one value less, or a value twice, at each of its places."""
    for place in places(document):
        for value in chance.sample(VALUES, min(each, len(VALUES))):
            yield _text(_changed(document, place, value))
        if place:
            yield _text(_without(document, place))
    text = json.dumps(document)
    for extra in ('"schema": 7, ', '"samples": -1, "samples": 2, ', '"\\u0000": [], '):
        if text.startswith("{"):
            yield ("{" + extra + text[1:]).encode()
    yield from (b"", b"\xff\xfe{", b"[" * 100_000, text[: len(text) // 2].encode(), text.encode() * 2)


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to every value of a document; of long lists the first two and the last."""
    yield above
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = [(k, v) for k, v in enumerate(document) if k < 2 or k == len(document) - 1]
    for key, value in items:
        yield from places(value, (*above, key))


def _changed(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(document)
    _inside(changed, place)[place[-1]] = value
    return changed


def _without(document: Any, place: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(document)
    del _inside(changed, place)[place[-1]]
    return changed


def _inside(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place[:-1]:
        document = document[key]
    return document


def _text(document: Any) -> bytes:
    return json.dumps(document).encode("utf-8", "surrogatepass")
