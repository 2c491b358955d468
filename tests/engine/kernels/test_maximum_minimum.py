"""`tflq/engine/kernels/pairs.py` against live LiteRT with XNNPACK: zeros, subnormals and NaN by operand."""

from __future__ import annotations

import numpy as np

from support.each import each
from support.processors import own
from support.running import run
from support.single_op import Array, T, build, litert

SPECIAL = np.array([0.0, -0.0, 1e-40, -1e-40, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-38, -3e38, 7.0], np.float32)


def assert_same(op: str, operands: list[T], inputs: list[Array], shape: tuple[int, ...]) -> None:
    model = build(op, operands, [T("float32", shape)], ("MaximumMinimumOptions", {}))
    got = run(model, inputs, own("litert-xnnpack"))[0]
    want = litert(model, inputs, "BUILTIN")[0]
    same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), (op, operands, got[~same], want[~same])


@each("op", ["MAXIMUM", "MINIMUM"])
@each(
    ("first", "second"),
    [
        ((12, 12), (12, 12)),
        ((12, 1), (1, 12)),
        ((1, 12), (12, 1)),
        ((12,), (12, 1)),
        ((12, 1), (12,)),
        ((1, 1), (12, 12)),
        ((12, 12), (1,)),
        ((), (12, 12)),
        ((12, 1, 1), (12, 12, 1)),
    ],
)
def test_two_tensors(op: str, first: tuple[int, ...], second: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(4):
        inputs = [rng.choice(SPECIAL, shape) for shape in (first, second)]
        shape = np.broadcast_shapes(first, second)
        assert_same(op, [T("float32", x.shape) for x in inputs], [np.asarray(x, np.float32) for x in inputs], shape)


@each("op", ["MAXIMUM", "MINIMUM"])
@each("position", [0, 1])
@each("shape", [(), (1,), (1, 1), (12,)])
def test_a_constant(op: str, position: int, shape: tuple[int, ...]) -> None:
    for limit in SPECIAL:
        operands = [T("float32", SPECIAL.shape)]
        operands.insert(position, T("float32", shape, value=np.full(shape, limit)))
        assert_same(op, operands, [SPECIAL], np.broadcast_shapes(SPECIAL.shape, shape))
