"""Operators that move strings, against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.single_op import T, build, litert, tflq


def int32s(*values: int) -> T:
    return T("int32", (len(values),), value=values)


def texts(*shape: int) -> Any:
    """Strings of several lengths, some of them empty."""
    count = int(np.prod(shape))
    values = np.empty(count, object)
    values[:] = [f"{number}é".encode() * (number % 4) for number in range(count)]
    return values.reshape(shape)


S = T("string", ())
POSITIONS = np.array([[4, 1], [0, 4]], np.int32)
CASES = {
    "reshape": ("RESHAPE", [T("string", (2, 3)), int32s(3, -1)], None, 1, [texts(2, 3)]),
    "squeeze": ("SQUEEZE", [T("string", (1, 3, 1))], None, 1, [texts(1, 3, 1)]),
    "expand_dims": ("EXPAND_DIMS", [T("string", (3,)), int32s(-1)], None, 1, [texts(3)]),
    "slice": ("SLICE", [T("string", (3, 4)), int32s(1, 1), int32s(2, -1)], None, 3, [texts(3, 4)]),
    "strided_slice": (
        "STRIDED_SLICE",
        [T("string", (3, 4)), int32s(0, 3), int32s(3, -9), int32s(2, -1)],
        ("StridedSliceOptions", {}),
        3,
        [texts(3, 4)],
    ),
    "gather": (
        "GATHER",
        [T("string", (5,)), T("int32", (2, 2))],
        ("GatherOptions", {"axis": 0}),
        3,
        [texts(5), POSITIONS],
    ),
    "gather_nd": ("GATHER_ND", [T("string", (5, 2)), T("int32", (2, 1))], None, 3, [texts(5, 2), POSITIONS[:, :1]]),
    "tile": ("TILE", [T("string", (2, 3)), int32s(2, 2)], None, 1, [texts(2, 3)]),
    "tile_3d": ("TILE", [T("string", (2, 2, 2)), int32s(2, 3, 1)], None, 1, [texts(2, 2, 2)]),
}


@pytest.mark.parametrize("name", CASES)
def test_strings(name: str) -> None:
    op, operands, options, version, inputs = CASES[name]
    model = build(op, operands, [S], options, version)
    (got,), (want,) = tflq(model, inputs), litert(model, inputs)
    assert got.shape == want.shape
    assert got.tolist() == want.tolist()
    assert any(want.reshape(-1))
