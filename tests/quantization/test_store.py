"""Tensors of many samples in memory and in files."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tflq.quantization.frontier import SampleStore


def batches(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.integers(-128, 128, (n, 5, 3), dtype=np.int8) for n in (4, 4, 1)]


def test_what_does_not_fit_memory_is_read_back_from_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SampleStore(memory=200) as store:
        for name in range(3):
            store.begin(name, 135)
            for array in batches(name):
                store.append(name, array)
        assert store.spilled == 2 * 135
        for name in range(3):
            for array, expected in zip(store.batches(name), batches(name), strict=True):
                np.testing.assert_array_equal(array, expected)
                assert array.dtype == expected.dtype
        store.drop(0)
        assert 0 not in store
        store.begin("again", 135)  # there is room again
        store.append("again", batches(9)[0])
        assert store.spilled == 2 * 135
        assert 1 in store
    assert 1 not in store
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="elsewhere files go when they are closed")
def test_files_have_no_name_that_could_outlive_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = SampleStore(memory=0)
    store.begin("x", 60)
    store.append("x", batches(0)[0])
    assert list(tmp_path.iterdir()) == []
    np.testing.assert_array_equal(store.get("x", 0), batches(0)[0])


def test_empty_arrays_are_kept() -> None:
    with SampleStore(memory=0) as store:
        store.begin("x", 1)
        store.append("x", np.zeros((2, 0), np.float32))
        assert store.get("x", 0).shape == (2, 0)
