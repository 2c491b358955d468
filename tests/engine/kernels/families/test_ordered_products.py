"""Products by tiles against the loops of ordered_sums and Eigen's order, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from support.each import each
from tflq.engine.kernels.families.ordered import OrderedProduct
from tflq.engine.kernels.geometry.volumes import Window3D, convolve
from tflq.engine.kernels.geometry.windows import Window, axis
from tflq.engine.numerics import eigen
from tflq.engine.numerics.codes import NumberClamp

RELU6 = NumberClamp(np.float32(0), np.float32(6))


def drawn(rng, *shape):
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(np.float32)


def over(height, width, kernel, stride, dilation, padding):
    return Window.over(axis(padding, height, kernel, stride, dilation), axis(padding, width, kernel, stride, dilation))


@each("filters", [1, 7, 16, 19, 40])
@each(
    "at",
    [over(9, 8, 3, 1, 1, 0), over(9, 8, 3, 2, 1, 0), over(12, 7, 2, 1, 3, 1), over(5, 5, 1, 1, 1, 0)],
    ids=["same", "strided", "dilated", "pointwise"],
)
def test_images(at, filters):
    """Padding, and values that are infinite or no numbers: as if padded taps were left out."""
    rng = np.random.default_rng(filters)
    x, w, bias = (
        drawn(rng, 2, at.height, at.width, 3),
        drawn(rng, at.kernel_h, at.kernel_w, 3, filters),
        drawn(rng, filters),
    )
    x[1, 2, 3, :] = np.inf, -np.inf, np.nan
    ours, theirs = np.empty((2, 2, at.out_h, at.out_w, filters), np.float32)
    convolve(x[:, None], w[None], bias, Window3D.of_image(at), filters, *RELU6, theirs[:, None])
    product = OrderedProduct.of(w.reshape(-1, filters), at, 2 * at.out_h * at.out_w)
    assert product is not None
    product.into(x, bias, RELU6, ours.reshape(-1, filters))()
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("rows", "length", "units"), [(4, 30, 8), (7, 700, 16), (50, 1500, 24)])
def test_eigens_order(rows, length, units):
    """Deep products add up parts of the depth."""
    rng = np.random.default_rng(rows)
    x, w, bias = drawn(rng, rows, length), drawn(rng, length, units), drawn(rng, units)
    block = eigen.ordered_block(length, units, rows, eigen.FIRST_LEVEL_CACHE)
    assert 0 < block <= length
    product = OrderedProduct.of_rows(w, rows, block)
    out = np.empty((rows, units), np.float32)
    unbounded = NumberClamp(np.float32(-np.inf), np.float32(np.inf))
    product.into(x[None, None], bias, unbounded, out)()
    np.testing.assert_array_equal(out, eigen.product(w, x) + bias)


def test_orders_that_tiles_do_not_have():
    """Few rows of one column, units that are no whole groups of eight, and small products have lanes of their own."""
    for sizes in ((64, 1, 9), (64, 8, 1), (64, 12, 9), (2, 8, 9)):
        assert eigen.ordered_block(*sizes, eigen.FIRST_LEVEL_CACHE) == 0


def test_what_the_loops_must_do():
    """Weights that are infinite would turn padded zeros into NaN; single rows gain nothing."""
    matrix = np.full((9, 4), np.inf, np.float32)
    padded = over(5, 5, 3, 1, 1, 0)
    assert OrderedProduct.of(matrix, padded, 25) is None
    assert OrderedProduct.of_rows(matrix, 25) is not None
    assert OrderedProduct.of_rows(matrix, 1) is None
