"""Sums over the rows of an operator, against the same sums written out in whole numbers."""

import numpy as np
import pytest

from tflq.quantization.refine.moments import ROWS, MatrixProduct, row_products
from tflq.quantization.scheme.operands import Multiplied

NOTHING = Multiplied(0, 0, 0, 0, None, 1, 2)
SAME, VALID = 0, 1
#: Groups, shape of the weights, depthwise, (padding, strides, dilations) or None, shape of the input.
CASES = {
    "dense": (1, (5, 70), False, None, (3, 200, 70)),
    "pointwise": (1, (4, 1, 1, 6), False, (VALID, 1, 1, 1, 1), (2, 17, 19, 6)),
    "same": (1, (4, 3, 3, 5), False, (SAME, 1, 1, 1, 1), (2, 9, 8, 5)),
    "stride": (1, (4, 3, 2, 5), False, (SAME, 2, 3, 1, 1), (2, 13, 11, 5)),
    "dilation": (1, (4, 3, 3, 2), False, (VALID, 1, 1, 2, 3), (1, 12, 14, 2)),
    "depthwise": (70, (1, 3, 3, 140), True, (SAME, 2, 2, 1, 1), (2, 33, 35, 70)),
    "groups": (3, (6, 3, 3, 4), False, (SAME, 1, 1, 1, 1), (2, 20, 15, 12)),
}


def rows_of(product: MatrixProduct, x: np.ndarray) -> np.ndarray:
    """All rows by group, [G, N, K], tap by tap as the definition of a convolution has them, in int64."""
    if product.steps is None:
        return x.reshape(1, -1, product.shape[1]).astype(np.int64)
    padding, stride_h, stride_w, dilation_h, dilation_w = product.steps
    height, width = product.shape[1:3]
    n, h, w, c = x.shape
    sizes = []
    for size, stride, reach in (
        (h, stride_h, (height - 1) * dilation_h + 1),
        (w, stride_w, (width - 1) * dilation_w + 1),
    ):
        out = -(-size // stride) if padding == SAME else (size - reach) // stride + 1
        sizes.append((out, max(0, (out - 1) * stride + reach - size) // 2 if padding == SAME else 0))
    (out_h, top), (out_w, left) = sizes
    rows = np.zeros((n, out_h, out_w, height, width, c), np.int64)
    for oy, ox, ky, kx in np.ndindex(out_h, out_w, height, width):
        y, at = oy * stride_h - top + ky * dilation_h, ox * stride_w - left + kx * dilation_w
        if 0 <= y < h and 0 <= at < w:
            rows[:, oy, ox, ky, kx] = x[:, y, at]
    by_group = rows.reshape(n * out_h * out_w, height * width, product.groups, -1).transpose(2, 0, 1, 3)
    return by_group.reshape(product.groups, n * out_h * out_w, -1)


@pytest.mark.parametrize("name", CASES)
def test_sums_of_codes_are_exact(name: str) -> None:
    groups, weights, depthwise, steps, shape = CASES[name]
    product = MatrixProduct(NOTHING, groups, weights, depthwise, steps)
    random = np.random.default_rng(7)
    left, right = (random.integers(-255, 256, shape).astype(np.float32) for _ in range(2))
    f, q = rows_of(product, left), rows_of(product, right)
    assert product.row_count(left) == f.shape[1]
    assert product.inputs == f.shape[2]
    np.testing.assert_array_equal(product.row_sum(left), f.sum(axis=1))
    np.testing.assert_array_equal(row_products(product, left, left), f.transpose(0, 2, 1) @ f)
    np.testing.assert_array_equal(row_products(product, left, right), f.transpose(0, 2, 1) @ q)


def test_sums_of_floats_keep_to_the_bound() -> None:
    product = MatrixProduct(NOTHING, 1, (4, 40), False, None)
    rows = np.random.default_rng(3).normal(1, 1, (3000, 40)).astype(np.float32)
    exact = rows.astype(np.float64)
    bound = (ROWS + 1) * 2.0**-24 * (np.abs(exact).T @ np.abs(exact))
    assert np.all(np.abs(row_products(product, rows, rows)[0] - exact.T @ exact) <= bound)
