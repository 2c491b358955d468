"""Mistakes of devices in plain NumPy: padding of other contents, pairs of products, powers of two, raw codes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.devices import T, dump, explained, names_of, one
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import by_name
from tflq.model.ir import Model

REF = by_name("litert-ref")


def convolution(padding: int = 0) -> Model:
    """Return a convolution of 8 by 8 pixels with input zero point 3 and output zero point -4."""
    draw = np.random.default_rng(4)
    weights = draw.integers(-120, 120, (6, 3, 3, 4)).astype(np.int8)
    return one(
        "CONV_2D",
        [
            T("int8", (1, 8, 8, 4), 0.02, 3),
            T("int8", (6, 3, 3, 4), 0.01, 0, value=weights),
            T("int32", (6,), 0.0002, 0, value=np.zeros(6, np.int32)),
        ],
        T("int8", (1, 8, 8, 6), 0.09, -4),
        ("Conv2DOptions", {"padding": padding, "stride_h": 1, "stride_w": 1}),
    )


def image(seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, (1, 8, 8, 4)).astype(np.int8)


def read_on(x: np.ndarray) -> np.ndarray:
    """Left and right neighbours in memory; zero points above and below."""
    memory = np.concatenate([np.zeros((1, 4), np.int8), x.reshape(-1, 4), np.zeros((1, 4), np.int8)])
    rows = [memory[r * 8 : r * 8 + 10] for r in range(8)]
    return np.pad(np.stack(rows)[None], ((0, 0), (1, 1), (0, 0), (0, 0)), constant_values=3)


CONTENTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "padding not made: rows are read on into the next, at the sides": read_on,
    "padding repeats the edge": lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge"),
    "padding wraps around": lambda x: np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="wrap"),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_other_contents_of_padding(name: str) -> None:
    model, x = convolution(), image()
    wide = convolution(padding=1)
    padded = CONTENTS[name](x)
    plan = make_plan(wide, REF, input_shapes={0: padded.shape})
    made = np.array(run(plan, {0: padded}, keep_all=True).values[3])
    assert name in names_of(explained(model, dump(model, [x], [made])))


def test_pairs_of_products_that_saturate() -> None:
    draw = np.random.default_rng(6)
    w = draw.integers(-127, 128, (8, 32)).astype(np.int8)
    model = one(
        "FULLY_CONNECTED",
        [T("int8", (4, 32), 0.02, 3), T("int8", (8, 32), 0.01, 0, value=w)],
        T("int8", (4, 8), 0.5, 0),
        ("FullyConnectedOptions", {}),
    )
    x = draw.integers(0, 128, (4, 32)).astype(np.int8)
    made = np.zeros((4, 8), np.int8)
    real = float(np.float64(np.float32(0.02)) * np.float64(np.float32(0.01)) / 0.5)
    for row in range(4):
        for unit in range(8):
            products = (x[row].astype(int) + 128) * w[unit].astype(int)
            pairs = np.clip(products.reshape(-1, 2).sum(1), -(2**15), 2**15 - 1)
            total = int(pairs.sum()) - (128 + 3) * int(w[unit].astype(int).sum())
            made[row, unit] = np.clip(np.copysign(np.floor(abs(total * real) + 0.5), total), -128, 127)
    names = names_of(explained(model, dump(model, [x], [made])))
    assert any(name.startswith("pairs of products saturate at 16 bits") for name in names), names


def test_codes_that_are_added() -> None:
    model = one(
        "ADD",
        [T("uint8", (16, 16), 0.1, 3), T("uint8", (16, 16), 0.2, 9)],
        T("uint8", (16, 16), 0.15, 20),
        ("AddOptions", {}),
    )
    draw = np.random.default_rng(8)
    a, b = (draw.integers(0, 256, (16, 16)).astype(np.uint8) for _ in range(2))
    names = names_of(explained(model, dump(model, [a, b], [a + b])))
    assert "scales and zero points ignored: codes are added, and wrap" in names


def test_an_average_by_a_reciprocal_keeps_half_up_from_being_certain() -> None:
    model = one(
        "AVERAGE_POOL_2D",
        [T("int8", (1, 8, 8, 16), 0.1, 0)],
        T("int8", (1, 4, 4, 16), 0.1, 0),
        ("Pool2DOptions", {"padding": 1, "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}),
    )
    x = np.random.default_rng(9).integers(-128, 128, (1, 8, 8, 16)).astype(np.int8)
    total = x.astype(int).reshape(1, 4, 2, 4, 2, 16).sum((2, 4))
    made = ((total * 16384 + 32768) >> 16).astype(np.int8)
    names = names_of(explained(model, dump(model, [x], [made])))
    assert "average of codes rounded half up" in names
    assert "average of codes by a reciprocal of 16 bits, rounded half up" in names
