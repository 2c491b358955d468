"""`tflq/engine/kernels/fully_connected_xnnpack.py` against live LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.engine.kernels import fully_connected_xnnpack as fully_connected_hybrid
from tflq.engine.kernels.families.hybrid import HybridSums
from tflq.engine.numerics.codes import NumberClamp
from tflq.engine.numerics.dynamic_range import rescale_apart, rescale_fused
from tflq.errors import UndefinedResultError


@pytest.mark.slow
@pytest.mark.parametrize("rescale", [rescale_fused, rescale_apart])
@pytest.mark.parametrize("rows", [1, 3])
def test_few_rows_are_as_many(rows, rescale):
    """Compiled rows against products by BLAS, for rows of all magnitudes, zeros, and one that has no quantization."""
    rng = np.random.default_rng(rows)
    weights = rng.integers(-128, 128, (40, 33)).astype(np.int8)
    scale, bias = rng.uniform(0.001, 0.1, 40).astype(np.float32), rng.standard_normal(40).astype(np.float32)
    data = fully_connected_hybrid.HybridData(
        shape=(rows, 40),
        sums=HybridSums.of_rows(weights, rows),
        scale=scale,
        rescale=rescale,
        clamp=NumberClamp(np.float32(-1), np.float32(1)),
        weights=weights,
    )
    for size in (1e-30, 0.01, 1.0, 50.0, 0.0):
        x = (rng.standard_normal((rows, 33)) * size).astype(np.float32)
        ours = fully_connected_hybrid.eval_hybrid_rows(data, x, weights, bias)
        theirs = fully_connected_hybrid.eval_hybrid(data, x, weights, bias)
        np.testing.assert_array_equal(ours.view(np.int32), theirs.view(np.int32))
    x[0, 0] = np.nan
    with pytest.raises(UndefinedResultError, match="NaN"):
        fully_connected_hybrid.eval_hybrid_rows(data, x, weights, bias)
