"""Weights of four bits with a scale for every block: what is written, and how near it comes."""

from __future__ import annotations

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from support.processors import has_xnnpack_profile
from tflq.comparison.results import Verdict
from tflq.engine.numerics.estimates import in_bfloat16
from tflq.model.flatbuf import read, write
from tflq.model.ir import Model, TensorType, view
from tflq.model.ir.constants import numbers_from
from tflq.model.surgery.cut import extract
from tflq.quantization.build.writer import in_blocks
from tflq.quantization.frontier import Runner
from tflq.quantization.judge.comparison import compare_models
from tflq.quantization.pipeline import quantize
from tflq.quantization.recipe import Mode, Recipe
from tflq.quantization.result import Result


def dense() -> Model:
    """Two FULLY_CONNECTED: 64 inputs to 48, which has whole blocks, and these to 10, which has not."""
    g = FloatGraph(3)
    options = {"fused_activation_function": 1, "keep_num_dims": False}
    x = g.op("FULLY_CONNECTED", [g.given(1, 64), g.weights(48, 64), g.bias(48)], options)[0]
    g.op("FULLY_CONNECTED", [x, g.weights(10, 48), g.bias(10)], {**options, "fused_activation_function": 0})
    return read(write(g.model()))


def inputs(count: int, seed: int = 1) -> list[list[np.ndarray]]:
    """Correlated inputs: second moments tell them from noise."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(2).normal(0, 1, (8, 64))
    return [[(rng.normal(0, 1, (1, 8)) @ mixing).astype(np.float32)] for _ in range(count)]


@pytest.fixture(scope="module")
def quantized() -> Result:
    return quantize(dense(), inputs(64), Recipe(mode=Mode.DYNAMICX4))


def test_whole_blocks_get_four_bits_and_others_eight(quantized: Result) -> None:
    model = read(write(quantized.model))
    graph = view(model)
    first, second = (graph.tensors[operator.inputs[1]] for operator in graph.ops)
    assert (first.type, second.type) == (TensorType.INT4, TensorType.INT8)
    assert first.quantization is not None
    details = first.quantization.details
    assert details is not None
    assert (details.table, details["block_size"]) == ("BlockwiseQuantization", 32)
    scales = graph.tensors[details["scales"]]
    assert (scales.type, scales.shape) == (TensorType.FLOAT16, (48, 2))
    assert [operator.version for operator in graph.ops] == [13, 12]


def test_scales_are_the_same_in_float16_and_bfloat16() -> None:
    rng = np.random.default_rng(4)
    weights = (rng.normal(0, 1, (16, 64)) * 10.0 ** rng.uniform(-8, 2, (16, 1))).astype(np.float32)
    params = in_blocks(weights)
    np.testing.assert_array_equal(params.scale.astype(np.float16).astype(np.float32), params.scale)
    np.testing.assert_array_equal(in_bfloat16(params.scale), params.scale)
    step = np.repeat(params.scale, 32).reshape(weights.shape)
    large = np.abs(weights).reshape(-1, 32).max(1).repeat(32).reshape(weights.shape) > 2.0**-13
    assert (np.abs(params.decode(params.encode(weights)) - weights) <= 3.5 * step)[large].all()


def stored_weights(model: Model) -> np.ndarray:
    """The first operator's codes."""
    graph = view(model)
    spec = graph.tensors[graph.op(0).inputs[1]]
    data = model.buffers[spec.buffer].data
    assert data is not None
    return numbers_from(data, TensorType(spec.type), spec.shape)


def test_gptq_makes_up_for_rounding(quantized: Result) -> None:
    """On other inputs the product is nearer than with weights rounded to nearest under the same scales."""
    model = dense()
    weights, source = stored_weights(model), view(model)
    params, rows = in_blocks(weights), np.concatenate([sample[0] for sample in inputs(32, seed=9)])
    codes = params.encode(weights), stored_weights(quantized.model)
    nearest, chosen = (np.square(rows @ (params.decode(c) - weights).T).sum() for c in codes)
    assert chosen < 0.7 * nearest
    samples = [{source.inputs[0]: row[None]} for row in rows]
    assert compare_models(model, quantized.model, samples).sqnr > 20


def test_a_part_keeps_the_scales_of_its_blocks(quantized: Result) -> None:
    graph = view(quantized.model)
    tensor, sample = graph.op(0).outputs[0], inputs(1, seed=5)[0][0]
    part, _ = extract(quantized.model, ["0"])
    whole = next(Runner(quantized.model, [tensor], "litert-xnnpack").run([{graph.inputs[0]: sample}]))
    cut = view(part)
    alone = next(Runner(part, None, "litert-xnnpack").run([{cut.inputs[0]: sample}]))
    np.testing.assert_array_equal(alone[cut.outputs[0]], whole[tensor])


@has_xnnpack_profile
def test_litert_computes_the_same_bits(quantized: Result) -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    check = quantized.report.check
    assert check.report is not None, check.error
    assert check.report.verdict == Verdict.SAME
