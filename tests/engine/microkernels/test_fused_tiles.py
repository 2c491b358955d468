"""Fused tiles and instructions that flush, compared with their definitions bit by bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.each import each
from tflq.engine.jit.compiled import compiled
from tflq.engine.jit.flushing import begin_flushing, end_flushing, fma, is_native, multiply_add
from tflq.engine.microkernels.floats import function_of, fused_tiles_choose, fused_tiles_definition, pack

TINY = 2.0**-126
SPECIAL = np.array([0.0, -0.0, 1e-40, -1e-40, TINY, -TINY, 3e-20, 3e38, np.inf, -np.inf, np.nan, 1.0], np.float32)


@compiled
def multiply_all(a, b, c, out):
    """Compute out[i] = a[i] * b[i] + c[i]. The caller guarantees: one size."""
    before = begin_flushing()
    for i in range(out.size):
        out[i] = multiply_add(a[i], b[i], c[i])
    end_flushing(before)


def bits(x):
    return np.where(np.isnan(x), np.float32(np.nan), x).view(np.uint32)


def test_instructions_have_the_definition_s_bits():
    """Around the smallest normal number, too, where the rounding decides whether a result is flushed."""
    rng = np.random.default_rng(1)
    a, b, c = (rng.choice(SPECIAL, 4000) for _ in range(3))
    near = rng.standard_normal((3, 4000)).astype(np.float32) * np.float32(2.0**-63)
    near[2] = (near[2].astype(np.float64) * 2.0**-63).astype(np.float32)
    for operands in ((a, b, c), near, rng.standard_normal((3, 4000)).astype(np.float32)):
        out = np.empty(4000, np.float32)
        multiply_all(*operands, out)
        with np.errstate(all="ignore"):
            want = [fma.python(*values) for values in zip(*operands, strict=True)]
        np.testing.assert_array_equal(bits(out), bits(np.array(want, np.float32)))


def test_the_definition_rounds_once():
    rng = np.random.default_rng(2)
    for a, b, c in rng.standard_normal((300, 3)).astype(np.float32):
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        got = fma.python(a, b, c)
        for direction in (-np.inf, np.inf):
            other = np.nextafter(got, np.float32(direction))
            assert abs(Fraction(float(got)) - exact) <= abs(Fraction(float(other)) - exact)


@pytest.mark.skipif(not is_native(), reason="this processor has no such tile")
@each("seed", range(60))
def test_tile_has_the_definition_s_bits(seed):
    rng = np.random.default_rng([3, seed])
    rows, length, width = (int(rng.integers(*limits)) for limits in ((1, 12), (1, 40), (16, 70)))
    tile = fused_tiles_choose(rows, width)
    assert tile.columns <= width
    operands = [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, length), (length, width), (width,))]
    if seed % 2:
        operands = [np.where(rng.random(x.shape) < 0.1, rng.choice(SPECIAL, x.shape), x) for x in operands]
    x, w, bias = operands
    panels = pack(w, tile)
    low, high = [(-np.inf, np.inf), (0.0, 6.0), (-1.0, 1.0)][seed % 3]
    column = min(tile.columns * (len(panels) - 1), width - tile.columns)
    outs = []
    for run, at in (function_of(tile), (fused_tiles_definition.bind(ROWS=tile.rows, COLUMNS=tile.columns), 0)):
        out = np.full((rows, width), 7, np.float32)
        drive = _driver.bind(run=run)
        drive(
            at, x, panels, len(panels) - 1, bias, np.float32(low), np.float32(high), out, column, min(rows, tile.rows)
        )
        outs.append(out)
    np.testing.assert_array_equal(*map(bits, outs))


def run(*arguments):
    """The tile, which the tests bind."""
    raise NotImplementedError


@compiled
def _driver(at, rows, weights, panel, biases, low, high, out, column, count):
    """Run a tile from row 0 on. The caller guarantees: what the tile asks for."""
    run(at, rows, 0, weights, panel, 0, biases, low, high, out, 0, column, count)
