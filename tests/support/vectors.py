"""Golden vectors: what the original C++ gave. Every comparison is bit by bit and is counted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tflq.errors import UndefinedResultError

#: values compared, by file
ROWS: Counter[str] = Counter()


class Vectors:
    def __init__(self, path):
        self.path, self.arrays, self.used = path, np.load(path), set()

    def __getitem__(self, name):
        self.used.add(name)
        return self.arrays[name]

    def names(self):
        return self.arrays.files

    def unused(self):
        return sorted(set(self.arrays.files) - self.used)

    def expect(self, name, got, rows=...):
        """`got` has the bits of the array `name` (of its `rows`)."""
        expected = self[name][rows]
        given = np.asarray(got)
        got = given.astype(expected.dtype)
        assert got.shape == expected.shape, name
        assert given.dtype.kind == "f" or (got == given).all(), f"{name}: values that its type cannot hold"
        bits = f"V{expected.dtype.itemsize}"
        differs = np.flatnonzero(np.ascontiguousarray(got).view(bits) != np.ascontiguousarray(expected).view(bits))
        if len(differs):
            first = differs[0]
            raise AssertionError(
                f"{self.path.name}: {name}: {len(differs)} of {expected.size} differ, first at {first}: "
                f"expected {expected.reshape(-1)[first]}, got {got.reshape(-1)[first]}"
            )
        ROWS[self.path.name] += expected.size


def each(function, *arrays):
    """`function` of every row; arrays broadcast, integers go in as Python's."""
    arrays = np.broadcast_arrays(*arrays)
    resolved = getattr(function, "resolve", lambda: function)()
    results = list(map(resolved, *(a.reshape(-1).tolist() for a in arrays)))
    return np.array(results).reshape(arrays[0].shape)


def each_or_abort(function, *arrays, results):
    """Columns of `function`'s results, then the status: 1 and zeros where it raises UndefinedResultError."""
    table = []
    for row in zip(*(a.tolist() for a in arrays), strict=True):
        try:
            table.append((*function(*row), 0))
        except UndefinedResultError:
            table.append((0,) * results + (1,))
    return [np.array(column) for column in zip(*table, strict=True)]
