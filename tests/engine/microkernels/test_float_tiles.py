"""Tiles of float sums against their definition, bit by bit, and free of fused multiply-adds on every machine."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.tiles import ARM, HostFloatTile, assembly
from tflq.engine.microkernels.floats import definition, pack
from tflq.engine.microkernels.kernel import FloatTile

TILES = [FloatTile(6, 2, 4), FloatTile(6, 2, 8)]
SPECIAL = np.array([0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan, 1.0], np.float32)


def floats(rng, shape, special):
    """Numbers of all magnitudes; where `special`, every tenth is one whose sums and products are not plain."""
    values = (rng.standard_normal(shape) * np.exp2(rng.integers(-20, 20, shape))).astype(np.float32)
    return np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), values) if special else values


@st.composite
def operands(draw, tile):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    special, length, width = draw(st.booleans()), draw(st.integers(1, 40)), draw(st.integers(1, 40))
    rows, row, count = draw(st.integers(1, 9)), 0, draw(st.integers(1, 12))
    row = draw(st.integers(0, rows - 1))
    weights = pack(floats(rng, (length, width), special), tile)
    panel = draw(st.integers(0, len(weights) - 1))
    column = max(0, min(panel * tile.columns, width - tile.columns))
    biases = floats(rng, max(width, tile.columns), special)
    low, high = draw(st.sampled_from([(0.0, 6.0), (-1.0, 1.0), (-np.inf, np.inf)]))
    given_rows = floats(rng, (rows, length), special)
    block = draw(st.integers(1, length + 1))
    return (
        given_rows,
        row,
        weights,
        panel,
        block,
        biases,
        np.float32(low),
        np.float32(high),
        column,
        min(count, rows - row),
    )


@pytest.mark.parametrize("tile", TILES, ids=lambda t: f"{t.rows}x{t.vectors}x{t.lanes}")
def test_tile_of_this_machine(tile):
    emitted, defined = HostFloatTile(tile), definition(tile)

    @settings(max_examples=100)
    @given(operands(tile))
    def check(drawn):
        *arguments, column, count = drawn
        rows, biases = arguments[0], arguments[5]
        outs = [np.full((len(rows), len(biases)), 7, np.float32) for _ in range(2)]
        for out, run in zip(outs, (emitted, defined), strict=True):
            run(*arguments, out, arguments[1], column, count)
        np.testing.assert_array_equal(*outs)
        assert (np.signbit(outs[0]) == np.signbit(outs[1]))[~np.isnan(outs[0])].all()

    check()


def test_panels_end_with_the_last_column():
    tile = TILES[0]
    matrix = np.arange(3 * 19, dtype=np.float32).reshape(3, 19)
    panels = pack(matrix, tile)
    assert panels.shape == (3, 3, 8)
    np.testing.assert_array_equal(panels[2], matrix[:, 11:])
    np.testing.assert_array_equal(pack(matrix[:, :2], tile)[0], np.pad(matrix[:, :2], ((0, 0), (0, 6))))


@pytest.mark.parametrize(
    ("triple", "cpu", "lanes", "multiplied", "fused"),
    [
        ("x86_64-unknown-linux-gnu", "haswell", 8, r"vmulps\s.*%ymm", "vfn?m(add|sub)"),
        ("x86_64-unknown-linux-gnu", "x86-64", 4, r"mulps\s.*%xmm", "vfn?m(add|sub)"),
        (ARM, "cortex-a76", 4, r"fmul\s+v\d+\.4s", r"\bfml[as]\b"),
    ],
)
def test_products_and_sums_are_rounded_apart(triple, cpu, lanes, multiplied, fused):
    """Also where the processor could do both at once; and nothing is called in the loop."""
    text = assembly(FloatTile(6, 2, lanes), triple, cpu, "")
    assert len(re.findall(multiplied, text)) >= 12
    assert not re.search(fused, text)
    assert not re.search(r"\bcallq?\b|\bbl\s", text)
