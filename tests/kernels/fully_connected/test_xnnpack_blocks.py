"""`tflq/kernels/fully_connected/xnnpack_blocks.py` against live LiteRT: sums of blocks, in its order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support import graphs as g
from support.processors import XNNPACK, has_xnnpack_profile
from support.single_op import Array, T, litert
from tflq.api.interpreter import Interpreter
from tflq.errors import ModelError, TflqError
from tflq.flatbuf import read, write
from tflq.ir import Quantization, Record


def model(
    rng: np.random.Generator,
    rows: int,
    length: int,
    units: int,
    block: int,
    *,
    bias: bool = True,
    scale: float = 1,
    counts: tuple[int, int] | None = None,
    type_: str = "int4",
) -> bytes:
    """One FULLY_CONNECTED of x (rows, length) with int4 weights, their scales log-uniform below `scale`."""
    codes = {"int8": 128, "int4": 8, "int2": 2}[type_]
    counts = counts or (units, length // block)
    factors = (scale * 2.0 ** rng.uniform(-9, 0, counts)).astype(np.float16)
    tensors = [
        T("float16", counts, value=factors),
        T(type_, (units, length), value=rng.integers(-codes, codes, (units, length)).astype(np.int8)),
        T("float32", (rows, length)),
        T("float32", (units,), value=rng.standard_normal(units).astype(np.float32)),
        T("float32", (rows, units)),
    ]
    options = ("FullyConnectedOptions", {"fused_activation_function": int(rng.integers(0, 4))})
    op = g.Op("FULLY_CONNECTED", (2, 1, 3 if bias else -1), (4,), options, 13)
    whole = read(g.build(g.Graph(tensors, (2,), (4,), [op])))
    graph = whole.subgraphs[0]
    details = Record("BlockwiseQuantization", {"scales": 0, "zero_points": -1, "block_size": block})
    blocks = Quantization(np.zeros(0, np.float32), np.zeros(0, np.int64), 0, details=details)
    specs = (graph.tensors[0], replace(graph.tensors[1], quantization=blocks), *graph.tensors[2:])
    return write(replace(whole, subgraphs=(replace(graph, tensors=specs),)))


def tflq(content: bytes, x: Array, profile: str) -> Array:
    interpreter = Interpreter(model_content=content, profile=profile)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@has_xnnpack_profile
@pytest.mark.parametrize(
    ("rows", "length", "units", "block"),
    [(1, 32, 1, 32), (1, 64, 8, 32), (3, 96, 5, 32), (4, 128, 17, 64), (5, 256, 9, 128), (9, 512, 24, 256)],
)
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_it_has_the_bits_of_the_runtime(rows: int, length: int, units: int, block: int, spread: float) -> None:
    rng = np.random.default_rng([rows, length, units, int(spread)])
    for bias in (True, False):
        content = model(rng, rows, length, units, block, bias=bias)
        x = (rng.standard_normal((rows, length)) * np.exp(spread * rng.standard_normal((rows, 1)))).astype(np.float32)
        got, want = tflq(content, x, XNNPACK), litert(content, [x], "BUILTIN")[0]
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


@has_xnnpack_profile
@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-13])
def test_scales_below_the_normal_numbers_of_float16_count(scale: float) -> None:
    rng = np.random.default_rng(5)
    content, x = model(rng, 2, 64, 6, 32, scale=scale), rng.standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_array_equal(tflq(content, x, XNNPACK), litert(content, [x], "BUILTIN")[0])


@pytest.mark.parametrize("block", [16, 48])
def test_blocks_of_other_sizes_are_left_to_the_kernels_below(block: int) -> None:
    rng = np.random.default_rng(6)
    with pytest.raises(ModelError, match="optimized resolver"):
        tflq(model(rng, 2, 96, 4, block), np.zeros((2, 96), np.float32), "litert-xnnpack")


@pytest.mark.parametrize("profile", ["litert-2.0-xnnpack", "litert-xnnpack-arm64"])
def test_where_the_order_of_sums_is_not_known_it_is_refused(profile: str) -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(TflqError, match="order in which XNNPACK adds"):
        tflq(model(rng, 1, 64, 3, 32), np.zeros((1, 64), np.float32), profile)


def test_blocks_that_do_not_divide_the_inputs_are_refused() -> None:
    rng = np.random.default_rng(8)
    content = model(rng, 1, 128, 3, 96, counts=(1, 4))  # 3 x 128 codes
    with pytest.raises(ModelError, match="block size"):
        tflq(content, np.zeros((1, 128), np.float32), "litert-xnnpack")


@pytest.mark.parametrize(
    ("type_", "scale", "counts"), [("int2", 1, (4, 2)), ("int8", 1, (4, 2)), ("int4", 0, (4, 2)), ("int4", 1, (4, 1))]
)
def test_what_the_delegate_takes_and_cannot_run_is_refused(type_: str, scale: float, counts: tuple[int, int]) -> None:
    rng = np.random.default_rng(9)
    content, x = model(rng, 2, 64, 4, 32, scale=scale, counts=counts, type_=type_), np.zeros((2, 64), np.float32)
    with pytest.raises(ModelError, match="block"):
        tflq(content, x, "litert-xnnpack")
    with pytest.raises(RuntimeError, match="XNNPACK delegate"):
        litert(content, [x], "BUILTIN")


@pytest.mark.parametrize("type_", ["int2", "int8"])
def test_blocks_of_other_sizes_and_types_are_left_to_the_kernels_below(type_: str) -> None:
    rng = np.random.default_rng(10)
    content, x = model(rng, 2, 64, 4, 16, type_=type_), rng.standard_normal((2, 64)).astype(np.float32)
    np.testing.assert_array_equal(tflq(content, x, "litert-xnnpack"), litert(content, [x], "BUILTIN")[0])
