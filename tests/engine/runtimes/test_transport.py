from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.engine.runtimes import runtime
from tflq.engine.runtimes.child import tflq_wire

WORDS = np.empty((2, 2), object)
WORDS[:] = [[b"", b"nul\0 inside\0"], [b"\xff\xfe", "grün".encode()]]
VALUES = [
    np.arange(6, dtype=np.int8).reshape(2, 3)[:, ::2],
    np.float32([np.nan, -0.0, np.inf]),
    np.empty((0, 4), np.int64),
    np.bool_([[True, False]]),
    np.array(7, np.int32),
    WORDS,
    np.empty((0,), object),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{list(v.shape)}")
def test_arrays_survive_the_file_in_both_directions(tmp_path: Path, value: np.ndarray) -> None:
    for writer, reader in ((runtime, tflq_wire), (tflq_wire, runtime)):
        path = tmp_path / "x.npz"
        np.savez(path, **writer.pack("x", value))
        with np.load(path, allow_pickle=False) as entries:
            back = reader.unpack("x", dict(entries))
        assert (back.dtype, back.shape) == (value.dtype, value.shape)
        assert back.tolist() == value.tolist() or np.isnan(value.astype(float)).any()
        if value.dtype != object:
            assert back.tobytes() == np.ascontiguousarray(value).tobytes()


def test_what_is_not_there_is_none() -> None:
    assert runtime.unpack("x", {}) is None
