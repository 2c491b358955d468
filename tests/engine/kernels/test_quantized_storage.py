"""FAKE_QUANT, NumericVerify, and tables and weights in narrow or half-width types, held against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flatbuffers import flexbuffers

from support import contracting as c
from support import graphs as g
from support.each import each
from support.single_op import Array, T, assert_same, build, draw, tflq
from tflq.engine.api.interpreter import Interpreter
from tflq.errors import ModelError, OperatorFailed, UndefinedResultError
from tflq.model.flatbuf import read, write
from tflq.model.ir import Quantization, Record


@each("bits", [1, 2, 4, 8, 16, 17, 24, 31])
@each("seed", range(6))
def test_fake_quant(bits: int, seed: int) -> None:
    rng = np.random.default_rng([bits, seed])
    low, high = (
        (-1.0, 1.0),
        (0.0, 6.0),
        (-3.5, 0.0),
        (-0.01, 10.0),
        (0.5, 3.0),
        tuple(np.sort(rng.standard_normal(2))),
    )[seed]
    options = {"min": np.float32(low), "max": np.float32(high), "num_bits": bits}
    x = T("float32", (3, 17))
    model = build("FAKE_QUANT", [x], [x], ("FakeQuantOptions", options), 2)
    values = draw(rng, x, low - 1, high + 1)
    step = np.float32((high - low) / (2**bits - 1))
    values[0] = np.float32(low) + step * np.float32(0.5) * np.arange(17, dtype=np.float32)
    values[1, :4] = np.nan, np.inf, -np.inf, -0.0
    assert_same(model, [values], options)


def test_fake_quant_refused() -> None:
    x = T("float32", (3,))
    for options in ({"min": 0, "max": 1, "num_bits": 8, "narrow_range": True}, {"min": 0, "max": 1, "num_bits": 40}):
        with pytest.raises(ModelError):
            tflq(build("FAKE_QUANT", [x], [x], ("FakeQuantOptions", options), 2), [np.zeros(3, np.float32)])
    options = {"min": 0, "max": 0, "num_bits": 8}
    with pytest.raises(UndefinedResultError):
        tflq(build("FAKE_QUANT", [x], [x], ("FakeQuantOptions", options), 2), [np.zeros(3, np.float32)])


def _verify(x: T, shape: tuple[int, ...], tolerance: float, log: bool, declared: T | None = None) -> bytes:
    options = bytes(flexbuffers.Dumps({"tolerance": tolerance, "log_if_failed": log}))
    op = g.Op("NumericVerify", (0, 1), (2,), custom=options)
    return g.build(g.Graph([x, T("float32", shape), declared or T("float32", shape)], (0, 1), (2,), [op]))


@pytest.mark.parametrize("type_", ["int8", "uint8", "int16", "float16"])
@pytest.mark.parametrize("log", [False, True])
def test_numeric_verify(type_: str, log: bool) -> None:
    rng = np.random.default_rng(5)
    for shape, scale in (((7,), 0.03), ((2, 3, 4), [0.1, 0.02, 0.5]), ((3, 5), 0.25)):
        several = np.size(scale) > 1 and type_ in ("int8", "uint8")
        step = float(np.max(scale))
        scales = scale if several else step
        zero_point = 3 if type_ in ("int8", "uint8") else 0
        x = T(type_, shape) if type_ == "float16" else T(type_, shape, scales, zero_point, 1 if several else 0)
        inputs = [draw(rng, x), rng.standard_normal(shape).astype(np.float32)]
        assert_same(_verify(x, shape, 5.0, False), inputs, shape)
        if log and type_ != "float16" and not several:
            inputs[1] = ((inputs[0].astype(np.float64) - zero_point) * step + step).astype(np.float32)
            assert_same(_verify(x, shape, 5.0, True), inputs, shape)
            inputs[1] += np.float32(9 * step)
            with pytest.raises(OperatorFailed, match="differs"):
                tflq(_verify(x, shape, 5.0, True), inputs)


@pytest.mark.parametrize("declared", ["int8", "uint8", "int16", "float16", "bool"])
def test_numeric_verify_makes_floats_whatever_is_declared(declared: str) -> None:
    """TensorFlow's converter declares the difference with the type and scale of what is verified."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
    x = T("int8", (2, 5), 0.1, 3)
    model = _verify(x, x.shape, 5.0, False, T(declared, x.shape, 0.1, 3))
    inputs = [np.arange(10, dtype=np.int8).reshape(2, 5), np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5)]
    assert_same(model, inputs, x.shape)
    ours = Interpreter(model_content=model)
    theirs = litert.Interpreter(model_content=model, experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF)
    for _ in range(2):  # before the operator is bound, and after
        (got,), (expected,) = ours.get_output_details(), theirs.get_output_details()
        assert got["dtype"] == expected["dtype"]
        assert got["quantization"] == expected["quantization"]
        assert ours._get_op_details(0)["result_types"] == theirs._get_op_details(0)["result_types"]
        ours.allocate_tensors()
        theirs.allocate_tensors()
    assert got["dtype"] is np.float32


@each("type_", ["int8", "uint8", "int4", "int2"])
@each("output", ["float32", "float16"])
@each("seed", range(8))
def test_embedding_lookup(type_: str, output: str, seed: int) -> None:
    rng = np.random.default_rng([seed, len(type_)])
    shape = (7, int(rng.integers(1, 9)), int(rng.integers(1, 4)))[: 2 + seed % 2]
    scales = [c.scale(rng) for _ in range(7)] if seed & 2 else c.scale(rng)
    table = T(type_, shape, scales, 0, 0, c.codes(rng, type_, shape))
    model = build("EMBEDDING_LOOKUP", [T("int32", (9,)), table], [T(output, ())], version=5)
    assert_same(model, [rng.integers(0, 7, 9).astype(np.int32)], shape)


def _blockwise(model: bytes, tensor: int, block: int) -> bytes:
    """The model with the scales of tensor `tensor` in tensor 0, for blocks of that size."""
    whole = read(model)
    graph = whole.subgraphs[0]
    details = Record("BlockwiseQuantization", {"scales": 0, "zero_points": -1, "block_size": block})
    quantization = Quantization(np.zeros(0, np.float32), np.zeros(0, np.int64), 0, details=details)
    spec = replace(graph.tensors[tensor], quantization=quantization)
    tensors = (*graph.tensors[:tensor], spec, *graph.tensors[tensor + 1 :])
    return write(replace(whole, subgraphs=(replace(graph, tensors=tensors),)))


@each("type_", ["int4", "int2"])
@each("output", ["float32", "float16"])
@each("block", [1, 2, 3, 4, 8, 24])
def test_embedding_lookup_of_blocks(type_: str, output: str, block: int) -> None:
    rng = np.random.default_rng(block)
    scales = T("float16", (5, 24 // block), value=rng.uniform(0.01, 2, (5, 24 // block)))
    table = T(type_, (5, 24), value=c.codes(rng, type_, (5, 24)))
    op = g.Op("EMBEDDING_LOOKUP", (2, 1), (3,), version=5)
    model = g.build(g.Graph([scales, table, T("int32", (6,)), T(output, (6, 24))], (2,), (3,), [op]))
    assert_same(_blockwise(model, 1, block), [rng.integers(0, 5, 6).astype(np.int32)], block)


@pytest.mark.parametrize("asymmetric", [False, True])
def test_fully_connected_of_blocks(asymmetric: bool) -> None:
    """The reference kernel has no eye for scales of blocks: they count as 0."""
    rng = np.random.default_rng(6)
    scales = T("float16", (4, 2), value=rng.uniform(0.01, 2, (4, 2)))
    weights = T("int4", (4, 64), value=c.codes(rng, "int4", (4, 64)))
    bias = T("float32", (4,), value=[1, -0.0, 3, -4])
    options = ("FullyConnectedOptions", {"asymmetric_quantize_inputs": asymmetric})
    op = g.Op("FULLY_CONNECTED", (2, 1, 3), (4,), options, 13)
    tensors = [scales, weights, T("float32", (3, 64)), bias, T("float32", (3, 4))]
    model = g.build(g.Graph(tensors, (2,), (4,), [op]))
    assert_same(_blockwise(model, 1, 32), [c.codes(rng, "float32", (3, 64))])


def _half(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return rng.standard_normal(shape).astype(np.float16)


def _narrow(type_: str) -> Callable[[np.random.Generator, tuple[int, ...]], Array]:
    return lambda rng, shape: c.codes(rng, type_, shape)


@pytest.mark.parametrize("type_", ["float16", "int4", "uint4", "int2", "int8"])
def test_weights_through_dequantize(type_: str) -> None:
    """Weights that are stored narrowly and widened before they are used: one scale, or one a unit."""
    rng = np.random.default_rng(7)
    for several in (False, True):
        scale = None if type_ == "float16" else [0.1, 0.2, 0.3] if several else 0.1
        values = _half(rng, (3, 5)) if type_ == "float16" else rng.integers(0, 2, (3, 5))
        stored = T(type_, (3, 5), scale, 0 if several else 1, 0, values) if scale else T(type_, (3, 5), value=values)
        tensors = [T("float32", (2, 5)), stored, T("float32", (3, 5)), T("float32", (2, 3))]
        ops = [
            g.Op("DEQUANTIZE", (1,), (2,), version=6),
            g.Op("FULLY_CONNECTED", (0, 2, -1), (3,), ("FullyConnectedOptions", {}), 2),
        ]
        assert_same(g.build(g.Graph(tensors, (0,), (3,), ops)), [c.codes(rng, "float32", (2, 5))], several)


@each("batch", [1, 4])
@each("seed", range(6))
def test_fully_connected_shuffled(batch: int, seed: int) -> None:
    rng = np.random.default_rng([seed, batch])
    units, length = 4 * int(rng.integers(1, 4)), 16 * int(rng.integers(1, 5))
    x = c.activation(rng, "uint8", (batch, length))
    w = c.weights(rng, "uint8", (units, length), 0)
    y = c.result(rng, x, w, (batch, units), length, "int16")
    y = T("int16", y.shape, y.scale, 0 if seed % 2 else 77)
    bias = c.bias(rng, x, w, units, "int32")
    options = {"weights_format": 1, "fused_activation_function": seed % 4}
    outputs = [y, T("uint8", (batch, length))]
    model = build("FULLY_CONNECTED", [x, w, bias], outputs, ("FullyConnectedOptions", options), 2)
    assert_same(model, [c.codes(rng, "uint8", (batch, length))], (units, length, options))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_depthwise_conv_2d_version_7(seed: int) -> None:
    """int4 filters, which only the full resolver takes: whole blocks of eight channels round otherwise."""
    rng = np.random.default_rng([seed, 7])
    depth, times = int(rng.choice([1, 3, 8, 11, 16])), int(rng.integers(1, 3))
    shape, channels = (2, 7, 6, depth), depth * times
    x = c.activation(rng, "int8", shape)
    w = c.weights(rng, "int8", (1, 3, 2, channels), 3, ("int4",))
    options = {"padding": 0, "stride_h": 1 + seed % 2, "stride_w": 1, "depth_multiplier": times}
    y = c.result(rng, x, w, (2, -(-7 // (1 + seed % 2)), 6, channels), 6)
    y = replace(y, scale=np.float32(2.0 ** np.round(np.log2(y.scale))))
    x = replace(x, scale=np.float32(0.125))
    w = replace(w, scale=np.float32(2.0) ** np.round(np.log2(w.scale)))
    bias = c.bias(rng, x, w, channels, "int32")
    op = g.Op("DEPTHWISE_CONV_2D", (0, 1, 2), (3,), ("DepthwiseConv2DOptions", options), 7)
    model = g.build(g.Graph([x, w, bias, y], (0,), (3,), [op]))
    g.assert_runs(model, [[c.codes(rng, "int8", shape)]], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
