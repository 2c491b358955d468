"""Weights are packed in blocks: equal to packing them at once, without wide copies of the whole matrix."""

from __future__ import annotations

import mmap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tflq.engine.jit.images import release
from tflq.engine.microkernels import product
from tflq.engine.microkernels.kernel import available


def whole(weights: np.ndarray, tile: object, zero: int) -> np.ndarray:
    """Panels by their definition, element by element: the last one ends where the matrix ends."""
    group, columns = tile.form.group, tile.columns
    length, width = weights.shape
    steps, count = -(-length // group), -(-width // columns)
    out = np.zeros((count, steps, columns * group), tile.form.right)
    for panel in range(count):
        start = max(0, min(panel * columns, width - columns))
        for k in range(length):
            for n in range(start, min(start + columns, width)):
                out[panel, k // group, (n - start) * group + k % group] = int(weights[k, n]) + zero
    return out


@pytest.mark.parametrize("elements", [1, 50, 1 << 20])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (9, 70), (33, 65)])
def test_blocks_give_the_same_panels(shape: tuple[int, int], elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = available(False)
    if not forms:
        pytest.skip("this processor has no form of integer products")
    monkeypatch.setattr(product, "_BLOCK", elements)
    weights = np.random.default_rng(0).integers(-128, 128, shape[::-1], dtype=np.int8).T
    for form in forms:
        for zero in (0, 128) if np.dtype(form.right) != np.int8 else (0,):
            if zero == 0 and np.dtype(form.right).kind == "u":
                continue
            tile = form.tile(shape[1])
            assert np.array_equal(product.panels(weights, tile, zero), whole(weights, tile, zero))
        given = product.Offsets(3, 128)
        right = weights.astype(np.int64) + 128
        assert product.column_terms(weights, given).tolist() == (len(weights) * 3 * 128 - 3 * right.sum(0)).tolist()
    assert product.largest_column(weights) == np.abs(weights.astype(np.int64)).sum(0).max()


def test_packing_takes_what_it_returns() -> None:
    forms = available(False)
    if not forms:
        pytest.skip("this processor has no form of integer products")
    weights = np.ones((4096, 4096), np.int8).T
    tracemalloc.start()
    product.largest_column(weights)
    product.column_terms(weights, product.Offsets(1, 1))
    assert product.packing_offsets(forms[0], weights, np.dtype(np.int8), 0)
    beside = tracemalloc.get_traced_memory()[1]
    made = product.panels(weights, forms[0].tile(4096), 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert beside < weights.nbytes
    assert peak < made.nbytes + weights.nbytes


def test_released_pages_keep_their_content(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 256, 5 << 20, dtype=np.uint8)
    (tmp_path / "a").write_bytes(data.tobytes())
    with open(tmp_path / "a", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = np.frombuffer(memoryview(mapped), np.uint8)
    assert np.array_equal(view, data)
    for part in (view, view[12345:], view[7:-9].reshape(2, -1).T, view[:0], data):
        release(part)
        assert np.array_equal(view, data)
    del view, part
