"""`numerics/byte_rows.py`: large matrices that stay where they lie, against live LiteRT, and in a mapped file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from support.each import each
from support.single_op import FULL, REFERENCE, T, build, litert
from tflq.engine.numerics import products

UNITS, LENGTH = 2048, 2059  # whole groups of sixteen, then eight, then three
OPTIONS = ("FullyConnectedOptions", {"asymmetric_quantize_inputs": True, "keep_num_dims": True})


def weights(low: int) -> np.ndarray:
    return np.random.default_rng(3).integers(low, 128, (UNITS, LENGTH), dtype=np.int8)


def model(activation: str, rows: int, low: int) -> bytes:
    scale = np.linspace(1e-4, 4e-4, UNITS)
    w = T("int8", (UNITS, LENGTH), scale, value=weights(low))
    if activation == "float32":
        operands, y = [T("float32", (rows, LENGTH)), w], T("float32", (rows, UNITS))
    else:
        bias = T("int32", (UNITS,), scale * 0.02, value=np.arange(UNITS) - 900)
        operands, y = [T("int8", (rows, LENGTH), 0.02, 17), w, bias], T("int8", (rows, UNITS), 0.1, -5)
    return build("FULLY_CONNECTED", operands, [y], OPTIONS, version=9)


def run(data: bytes | Path, x: np.ndarray, profile: str) -> np.ndarray:
    runner = (
        tflq.Interpreter(model_content=data, profile=profile)
        if isinstance(data, bytes)
        else tflq.Interpreter(str(data), profile=profile)
    )
    runner.allocate_tensors()
    runner.set_tensor(0, x)
    runner.invoke()
    return np.array(runner.get_tensor(runner.get_output_details()[0]["index"]))


def rows_of(activation: str, rows: int) -> np.ndarray:
    random = np.random.default_rng(rows)
    if activation == "float32":
        return random.standard_normal((rows, LENGTH)).astype(np.float32)
    return random.integers(-128, 128, (rows, LENGTH), dtype=np.int8)


@each(("profile", "resolver"), [("litert-ref", REFERENCE), ("litert-opt", FULL)])
@each("rows", [1, products.FEW, products.FEW + 1])
@each("activation", ["float32", "int8"])
@each("low", [-128, -127])
def test_large_weights_give_the_bits_of_the_runtime(
    profile: str, resolver: str, rows: int, activation: str, low: int
) -> None:
    assert UNITS * LENGTH >= products.LARGE
    data, x = model(activation, rows, low), rows_of(activation, rows)
    (want,) = litert(data, [x], resolver)
    np.testing.assert_array_equal(run(data, x, profile).view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize("losing", [0, 16, 32])
def test_products_in_place_are_sums_of_integers(losing: int) -> None:
    random = np.random.default_rng(1)
    w = random.integers(-128, 128, (33, 37), dtype=np.int8)
    w[:5] = -128
    codes = random.integers(-(2**15), 2**15, (3, 37)).astype(np.int16)
    lost = 256 * np.minimum(codes[:, None, :losing], 0).astype(np.int64) * (w[None, :, :losing] == -128)
    want = codes.astype(np.int64) @ w.T.astype(np.int64) + lost.sum(-1)
    np.testing.assert_array_equal(products.in_place(codes, w, losing), want.astype(np.int32))


def test_sums_wrap_as_32_bits_do() -> None:
    codes, w = np.full((1, 1 << 20), -(2**15), np.int16), np.full((1, 1 << 20), -128, np.int8)
    assert products.in_place(codes, w).tolist() == [[np.int64(2**42).astype(np.int32)]]


@pytest.mark.parametrize("activation", ["float32", "int8"])
def test_binding_copies_no_weights(activation: str, tmp_path: Path) -> None:
    path, x = tmp_path / "m.tflite", rows_of(activation, 1)
    path.write_bytes(model(activation, 1, -127))
    run(path, x, "litert-ref")  # whatever is imported and compiled
    runner = tflq.Interpreter(str(path))
    before = _anonymous()
    if before is None:
        pytest.skip("this system does not count anonymous memory")
    runner.allocate_tensors()
    after = _anonymous()
    assert after is not None
    assert after - before < UNITS * LENGTH // 2


def _anonymous() -> int | None:
    """Anonymous memory of this process in bytes, where Linux says it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    found = [line for line in lines if line.startswith("RssAnon")]
    return int(found[0].split()[1]) << 10 if found else None
