"""`tflq/engine/kernels/mean_sum_xnnpack.py` against live LiteRT: rows of any length, and sums that underflow."""

from __future__ import annotations

import numpy as np

from support.each import each
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import run
from support.single_op import Array, T, build, litert

CASES = [
    *(((3, size), [1]) for size in (1, 5, 8, 15, 16, 17, 31, 32, 40, 47, 56, 63, 64, 257, 768)),
    ((4, 33), [0]),
    ((2, 7, 9, 33), [1, 2]),
    ((2, 7, 9, 33), [0, 3]),
    ((2, 7, 9, 33), [0, 2]),
    ((2, 7, 9, 33), [1, 3]),
    ((2, 3, 4, 5, 6, 17), [0, 2, 4]),
    ((2, 3, 4, 5, 6, 17), [1, 3, 5]),
    ((5, 6), [0, 1]),
    ((1, 1, 48), [-1, 2]),
    ((1, 16, 1), [1]),
]


def tflq(content: bytes, x: Array) -> Array:
    return run(content, [x], XNNPACK)[0]


@has_xnnpack_profile
@each("op", ["MEAN", "SUM"])
@each(("shape", "axes"), CASES)
@each("magnitude", [1.0, 1e-38])
def test_sums(op: str, shape: tuple[int, ...], axes: list[int], magnitude: float) -> None:
    rng = np.random.default_rng(len(shape))
    x = (rng.standard_normal(shape) * magnitude).astype(np.float32)
    y = [1 if i in axes or i - len(shape) in axes else size for i, size in enumerate(shape)]
    operands = [T("float32", shape), T("int32", (len(axes),), value=axes)]
    content = build(op, operands, [T("float32", y)], ("ReducerOptions", {"keep_dims": True}))
    got, want = tflq(content, x), litert(content, [x], "BUILTIN")[0]
    np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
