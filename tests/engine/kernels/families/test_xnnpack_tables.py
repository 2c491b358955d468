"""Tables of 8-bit codes by XNNPACK, which round half to even, against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from support.processors import has_xnnpack_profile
from support.running import assert_same, run
from support.single_op import T, build, litert

CODES = {"int8": np.arange(-128, 128).astype(np.int8), "uint8": np.arange(256).astype(np.uint8)}


def model(op: str, kind: str, scales: tuple[float, float], zero_points: tuple[int, int]) -> bytes:
    x, y = (T(kind, (256,), s, z) for s, z in zip(scales, zero_points, strict=True))
    return build(op, [x], [y], None, 1 if op == "ELU" else 2)


@pytest.mark.parametrize(
    ("op", "scales", "zero_points", "code", "even", "away"),
    [
        ("LOGISTIC", (0.005025009158998728, 0.00390625), (62, -128), -38, -32, -31),
        ("LOGISTIC", (0.11420722305774689, 0.00390625), (-108, -128), -82, 116, 115),  # the product alone is no tie
        ("ELU", (0.0240478515625, 0.015625), (-87, -70), -23, 28, 29),
        ("ELU", (0.2430419921875, 0.0322265625), (-85, -76), -73, 14, 15),
    ],
)
def test_ties(
    op: str, scales: tuple[float, float], zero_points: tuple[int, int], code: int, even: int, away: int
) -> None:
    """Observed in LiteRT 2.3; those of the built-in kernels round half away."""
    file = model(op, "int8", scales, zero_points)
    for profile, expected in (("litert-xnnpack-avx2", even), ("litert-2.2-xnnpack", even), ("litert-opt", away)):
        assert int(run(file, [CODES["int8"]], profile)[0][code + 128]) == expected
    assert int(run(file, [CODES["int8"]], "litert-2.0-xnnpack")[0][code + 128]) == away


@has_xnnpack_profile
@pytest.mark.parametrize("op", ["LOGISTIC", "TANH", "ELU"])
def test_tables_are_those_of_litert(op: str) -> None:
    rng = np.random.default_rng(9)
    for number in range(150):
        kind = "int8" if op == "ELU" else ("int8", "uint8")[number % 2]
        low = int(CODES[kind][0])
        scale, zero_point = {"LOGISTIC": (1 / 256, low), "TANH": (1 / 128, low + 128)}.get(
            op, (2.0 ** rng.uniform(-7, -1), -9)
        )
        file = model(op, kind, (float(2.0 ** rng.uniform(-8, 1)), scale), (int(rng.integers(256)) + low, zero_point))
        assert_same(run(file, [CODES[kind]], "litert-xnnpack"), litert(file, [CODES[kind]], "BUILTIN"), str(number))
