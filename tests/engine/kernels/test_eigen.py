from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.each import each
from support.single_op import FULL, Array, T, build, litert
from tflq.engine.numerics import eigen
from tflq.engine.numerics.eigen import logistic, tanh
from tflq.engine.runtimes.child import tflq_processor as processor

#: What Eigen finds on this machine.
CACHE = processor.describe()["first_level_cache"] or eigen.FIRST_LEVEL_CACHE


def _live(model: bytes, x: Array) -> Array:
    """LiteRT's kernel that calls Eigen, without delegates."""
    return litert(model, [x], FULL)[0]


def _dense(weights: Array, x: Array) -> bytes:
    inputs = [T("float32", x.shape), T("float32", weights.shape, value=weights), None]
    return build("FULLY_CONNECTED", inputs, [T("float32", (len(x), len(weights)))], ("FullyConnectedOptions", {}))


@each("rows", [1, 2, 4, 7, 9])
@each("units", [1, 3, 4, 7, 8, 13, 40])
def test_product(rows: int, units: int) -> None:
    """Every way that a product can take, by its sizes; the deepest two are cut into panels."""
    rng = np.random.default_rng([rows, units])
    for depth in (1, 3, 4, 7, 8, 11, 12, 20, 33, 129, 700, 1501):
        weights = rng.standard_normal((units, depth)).astype(np.float32)
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        got = eigen.product(np.ascontiguousarray(weights.T), x, cache=CACHE)
        np.testing.assert_array_equal(got, _live(_dense(weights, x), x), f"depth {depth}")


def test_product_depends_on_the_first_level_cache_beyond_a_panel() -> None:
    rng = np.random.default_rng(1)
    columns, x = rng.standard_normal((1501, 8)).astype(np.float32), rng.standard_normal((4, 1501)).astype(np.float32)
    for depth, is_same in ((eigen.panel_limit(32 << 10), True), (1501, False)):
        rows = np.ascontiguousarray(x[:, :depth])
        small, large = (eigen.product(columns[:depth], rows, cache=size) for size in (32 << 10, 48 << 10))
        assert np.array_equal(small, large) == is_same


@pytest.mark.parametrize(("op", "function"), [("TANH", tanh), ("LOGISTIC", logistic)])
def test_functions(op: str, function: Callable[[Array], Array]) -> None:
    """Over a dense range with its ends, and for sizes that leave elements over."""
    dense = np.concatenate([np.linspace(-20, 20, 40001), [-200, -104, -103.9, 0, -0.0, 1e-30, 16.7, np.inf, -np.inf]])
    for size in (1, 2, 3, 5, 7, len(dense)):
        x = dense[-size:].astype(np.float32)
        want = _live(build(op, [T("float32", x.shape)], [T("float32", x.shape)]), x)
        np.testing.assert_array_equal(function(x).view(np.uint32), want.view(np.uint32))


@pytest.mark.parametrize("offset", range(4))
def test_logistic_of_unaligned_memory(offset: int) -> None:
    """Elements outside aligned groups of four come from the C library, and only they."""
    x = np.linspace(-8, 8, 1001, dtype=np.float32)
    together, alone = (logistic(x, offset), np.concatenate([logistic(v, 1) for v in x.reshape(-1, 1)]))
    inside = (np.arange(1001) + offset) // 4
    whole = (inside > 0 if offset else inside >= 0) & (inside < (1001 + offset) // 4)
    np.testing.assert_array_equal(together[~whole], alone[~whole])
    assert (together[whole] != alone[whole]).any()
