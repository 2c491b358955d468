"""`tflq/engine/kernels/fully_connected_xnnpack.py` against live LiteRT: sums of blocks, in its order."""

from __future__ import annotations

import numpy as np
import pytest

from support.block_weights import block_model
from support.each import each
from support.processors import XNNPACK, has_xnnpack_profile
from support.running import run
from support.single_op import Array, litert
from tflq.errors import ModelError, TflqError


def tflq(content: bytes, x: Array, profile: str) -> Array:
    return run(content, [x], profile)[0]


@has_xnnpack_profile
@each(
    ("rows", "length", "units", "block"),
    [(1, 32, 1, 32), (1, 64, 8, 32), (3, 96, 5, 32), (4, 128, 17, 64), (5, 256, 9, 128), (9, 512, 24, 256)],
)
@each("spread", [0.0, 3.0])
def test_it_has_the_bits_of_the_runtime(rows: int, length: int, units: int, block: int, spread: float) -> None:
    rng = np.random.default_rng([rows, length, units, int(spread)])
    for bias in (True, False):
        content = block_model(rng, rows, length, units, block, bias=bias)
        x = (rng.standard_normal((rows, length)) * np.exp(spread * rng.standard_normal((rows, 1)))).astype(np.float32)
        got, want = tflq(content, x, XNNPACK), litert(content, [x], "BUILTIN")[0]
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@has_xnnpack_profile
@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-13])
def test_scales_below_the_normal_numbers_of_float16_count(scale: float) -> None:
    rng = np.random.default_rng(5)
    content, x = block_model(rng, 2, 64, 6, 32, scale=scale), rng.standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_array_equal(tflq(content, x, XNNPACK), litert(content, [x], "BUILTIN")[0])


@has_xnnpack_profile
@pytest.mark.parametrize("block", [16, 48])
def test_blocks_of_other_sizes_are_left_to_the_kernels_below(block: int) -> None:
    rng = np.random.default_rng(6)
    content, x = block_model(rng, 2, 96, 4, block), rng.standard_normal((2, 96)).astype(np.float32)
    np.testing.assert_array_equal(tflq(content, x, XNNPACK), litert(content, [x], "BUILTIN")[0])


@pytest.mark.parametrize("profile", ["litert-2.0-xnnpack", "litert-xnnpack-arm64"])
def test_where_the_order_of_sums_is_not_known_it_is_refused(profile: str) -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(TflqError, match="order in which XNNPACK adds"):
        tflq(block_model(rng, 1, 64, 3, 32), np.zeros((1, 64), np.float32), profile)


def test_blocks_that_do_not_divide_the_inputs_are_refused() -> None:
    rng = np.random.default_rng(8)
    content = block_model(rng, 1, 128, 3, 96, counts=(1, 4))  # 3 x 128 codes
    with pytest.raises(ModelError, match="block size"):
        tflq(content, np.zeros((1, 128), np.float32), "litert-xnnpack")


@pytest.mark.parametrize(
    ("type_", "scale", "counts"), [("int2", 1, (4, 2)), ("int8", 1, (4, 2)), ("int4", 0, (4, 2)), ("int4", 1, (4, 1))]
)
def test_what_the_delegate_takes_and_cannot_run_is_refused(type_: str, scale: float, counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(9)
    content, x = block_model(rng, 2, 64, 4, 32, scale=scale, counts=counts, type_=type_), np.zeros((2, 64), np.float32)
    with pytest.raises(ModelError, match="block"):
        tflq(content, x, "litert-xnnpack")
    with pytest.raises(RuntimeError, match="XNNPACK delegate"):
        litert(content, [x], "BUILTIN")


@pytest.mark.parametrize("type_", ["int2", "int8"])
def test_blocks_of_other_sizes_and_types_are_left_to_the_kernels_below(type_: str) -> None:
    rng = np.random.default_rng(10)
    content, x = block_model(rng, 2, 64, 4, 16, type_=type_), rng.standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_array_equal(tflq(content, x, "litert-xnnpack"), litert(content, [x], "BUILTIN")[0])
