"""Forms of float operators that become portable: LiteRT computes the same function before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from tflq.flatbuf import write
from tflq.ir import Model, view
from tflq.quantization.portable.forms.floats import portable_form

runtime = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

Array = np.ndarray[Any, Any]


def outputs(model: Model, *inputs: Array) -> list[Array]:
    """Return what LiteRT's reference kernels compute."""
    resolver = runtime.OpResolverType.BUILTIN_REF
    interpreter = runtime.Interpreter(model_content=write(model), experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def names(model: Model) -> list[str]:
    return [operator.name for operator in view(model).ops]


def assert_same_function(model: Model, changed: Model) -> None:
    given = [np.random.default_rng(5).normal(0, 1, s.shape).astype(np.float32) for s in map_inputs(model)]
    for before, after in zip(outputs(model, *given), outputs(changed, *given), strict=True):
        np.testing.assert_allclose(after, before, rtol=2e-6, atol=2e-6)


def map_inputs(model: Model) -> list[Any]:
    graph = view(model)
    return [graph.tensors[t] for t in graph.inputs]


def mean(shape: tuple[int, ...], axes: list[int], keep: bool) -> Model:
    g = FloatGraph(1)
    g.op("MEAN", [g.given(*shape), g.constant(axes, "int32")], {"keep_dims": keep})
    return g.model()


@pytest.mark.parametrize(
    ("shape", "axes", "keep", "becomes"),
    [
        ((1, 4, 6, 5), [1, 2], True, ["DEPTHWISE_CONV_2D"]),
        ((2, 4, 6, 5), [-3, -2], False, ["DEPTHWISE_CONV_2D", "RESHAPE"]),
        ((1, 9, 5), [1], False, ["RESHAPE", "DEPTHWISE_CONV_2D", "RESHAPE"]),
        ((3, 9, 5), [2], True, ["RESHAPE", "DEPTHWISE_CONV_2D", "RESHAPE"]),
        ((2, 3, 4, 5), [1, 2, 3], False, ["RESHAPE", "DEPTHWISE_CONV_2D", "RESHAPE"]),
    ],
)
def test_mean_becomes_a_depthwise_convolution(
    shape: tuple[int, ...], axes: list[int], keep: bool, becomes: list[str]
) -> None:
    model = mean(shape, axes, keep)
    changed = portable_form(model)
    assert names(changed.model) == becomes
    assert changed.origins == (0,) * len(becomes)
    assert [(r.index, r.op, r.becomes) for r in changed.rewrites] == [(0, "MEAN", ", ".join(becomes))]
    assert_same_function(model, changed.model)


def test_mean_over_axes_apart_stays() -> None:
    changed = portable_form(mean((1, 4, 6, 5), [1, 3], keep=True))
    assert names(changed.model) == ["MEAN"]
    assert changed.rewrites == ()


def pool(padding: int, size: int, stride: int, fused: int = 0) -> Model:
    g = FloatGraph(2)
    options = {"padding": padding, "stride_h": stride, "stride_w": stride, "filter_height": size, "filter_width": size}
    g.op("AVERAGE_POOL_2D", [g.given(1, 8, 8, 3)], {**options, "fused_activation_function": fused})
    return g.model()


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(pool(1, 3, 2), id="valid"),
        pytest.param(pool(0, 2, 2), id="same without padding"),
        pytest.param(pool(1, 2, 1, fused=1), id="with RELU"),
    ],
)
def test_average_pool_becomes_a_depthwise_convolution(model: Model) -> None:
    changed = portable_form(model)
    assert names(changed.model) == ["DEPTHWISE_CONV_2D"]
    assert_same_function(model, changed.model)


def test_average_pool_with_smaller_windows_at_the_border_stays() -> None:
    assert names(portable_form(pool(0, 3, 2)).model) == ["AVERAGE_POOL_2D"]
