"""Products whose results are added: an operand's scale moves, so that multipliers are powers of two all the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.float_graphs import FloatGraph, samples
from tflq.model.ir import Model, view
from tflq.proof import Word
from tflq.quantization.pipeline import quantize
from tflq.quantization.portable.tables import shift_of
from tflq.quantization.recipe_files import read_recipe
from tflq.quantization.result import Result

RUNTIMES = ("litert-ref", "litert-xnnpack", "tflm-cmsis-nn-single")
NO_FUSED = {"fused_activation_function": 0}
ADDED = {**NO_FUSED, "pot_scale_int16": False}
DENSE = {**NO_FUSED, "weights_format": 0, "keep_num_dims": False}


def dense(g: FloatGraph, x: int, count: int = 6) -> int:
    return g.op("FULLY_CONNECTED", [x, g.weights(count, g.shape(x)[-1]), g.bias(count)], DENSE)[0]


def gated() -> Model:
    """Return two steps of a gated recurrence: h' = z * h + (1 - z) * n."""
    g = FloatGraph(3)
    x = g.given(1, 8)
    h = dense(g, x)
    for _ in range(2):
        z = g.unary("LOGISTIC", dense(g, x))
        n = g.unary("TANH", dense(g, h))
        (kept,) = g.op("MUL", [z, h], NO_FUSED)
        (rest,) = g.op("SUB", [g.constant(1.0), z], ADDED)
        (new,) = g.op("MUL", [rest, n], NO_FUSED)
        (h,) = g.op("ADD", [kept, new], ADDED)
    return g.model()


def gate_after_sums() -> Model:
    """Return a product all of whose scales belong to one sum."""
    g = FloatGraph(4)
    x, y = g.given(1, 8), g.given(1, 8)
    (z,) = g.op("ADD", [x, y], ADDED)
    (product,) = g.op("MUL", [x, y], NO_FUSED)
    g.op("SUB", [product, z], ADDED)
    return g.model()


def quantized(model: Model) -> Result:
    given = [list(sample.values()) for sample in samples(model, 3, 20)]
    return quantize(model, given, replace(read_recipe("fast"), portable=RUNTIMES))


@pytest.mark.slow
def test_products_that_are_added_have_portable_scales() -> None:
    result = quantized(gated())
    multiplied = [op for op in view(result.model).ops if op.name == "MUL"]
    assert len(multiplied) == 4
    assert all(shift_of(op) is not None for op in multiplied)
    assert result.report.portable is not None
    assert result.report.portable.proof.word == Word.EQUAL


@pytest.mark.slow
def test_scales_of_sums_do_not_run_away() -> None:
    model = quantized(gated()).model
    sums = [op.output().quantization for op in view(model).ops if op.name in ("MUL", "ADD")]
    scales = [float(q.scale[0]) for q in sums if q is not None]
    assert max(scales) < 0.1


@pytest.mark.slow
def test_a_product_that_no_scale_can_serve_leaves_them_as_they_are() -> None:
    with np.errstate(all="raise"):
        model = quantized(gate_after_sums()).model
    (multiplied,) = (op for op in view(model).ops if op.name == "MUL")
    assert shift_of(multiplied) is None
    specs = [multiplied.graph.tensors[t] for t in (*multiplied.inputs, *multiplied.outputs)]
    assert max(float(spec.quantization.scale[0]) for spec in specs if spec.quantization is not None) < 1
