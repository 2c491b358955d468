"""Forms of float operators that become portable: LiteRT computes the same function before and after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.each import each
from support.float_graphs import FloatGraph, random_graph, samples
from support.running import litert, run_once
from tflq.engine.interpreter import make_plan, run
from tflq.engine.profiles import Profile, by_name
from tflq.errors import UnsupportedError
from tflq.model.flatbuf import write
from tflq.model.ir import Model, view, with_graph
from tflq.model.surgery.tap import with_tensor
from tflq.quantization.portable.floats import obstacles, portable_form

pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")

Array = np.ndarray[Any, Any]


def outputs(model: Model, *inputs: Array) -> list[Array]:
    """Return what LiteRT's reference kernels compute."""
    return run_once(litert(write(model)), inputs)


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
    changed = portable_form(model, ())
    assert names(changed.model) == becomes
    assert changed.origins == (0,) * len(becomes)
    assert [(r.index, r.op, r.becomes) for r in changed.rewrites] == [(0, "MEAN", ", ".join(becomes))]
    assert_same_function(model, changed.model)


def test_mean_over_axes_apart_stays() -> None:
    changed = portable_form(mean((1, 4, 6, 5), [1, 3], keep=True), ())
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
    changed = portable_form(model, ())
    assert names(changed.model) == ["DEPTHWISE_CONV_2D"]
    assert_same_function(model, changed.model)


def test_average_pool_with_smaller_windows_at_the_border_stays() -> None:
    assert names(portable_form(pool(0, 3, 2), ()).model) == ["AVERAGE_POOL_2D"]


def resize(size: tuple[int, int], target: tuple[int, int], *, corners: bool, half: bool) -> Model:
    g = FloatGraph(3)
    options = {"align_corners": corners, "half_pixel_centers": half}
    g.op("RESIZE_BILINEAR", [g.given(1, *size, 3), g.constant(target, "int32")], options)
    return g.model()


WHOLE = [
    pytest.param(size, target, corners, half, id=f"{size} to {target} {corners} {half}")
    for size, target, corners, half in [
        ((5, 4), (10, 8), False, True),
        ((5, 4), (15, 4), False, True),
        ((5, 4), (20, 12), False, True),
        ((5, 4), (10, 8), False, False),
        ((3, 4), (12, 20), False, False),
        ((5, 4), (9, 7), True, False),
        ((5, 1), (13, 1), True, False),
    ]
]


@pytest.mark.parametrize(("size", "target", "corners", "half"), WHOLE)
def test_bilinear_by_whole_factors_becomes_a_convolution(
    size: tuple[int, int], target: tuple[int, int], corners: bool, half: bool
) -> None:
    model = resize(size, target, corners=corners, half=half)
    changed = portable_form(model, ())
    assert "RESIZE_BILINEAR" not in names(changed.model)
    assert_same_function(model, changed.model)


@pytest.mark.parametrize(("target", "corners"), [((7, 8), False), ((10, 8), True)])
def test_bilinear_by_other_factors_stays(target: tuple[int, int], corners: bool) -> None:
    assert names(portable_form(resize((5, 4), target, corners=corners, half=False), ()).model) == ["RESIZE_BILINEAR"]


NO_FUSED = {"fused_activation_function": 0}


def upsampled() -> Model:
    """Return a TRANSPOSE_CONV whose output shape the model computes from its input's."""
    g = FloatGraph(7)
    x = g.given(1, 5, 5, 3)
    (shape,) = g.op("SHAPE", [x], {"out_type": 2}, ("int32",))
    begin, end, step = (g.constant([n], "int32") for n in (0, 1, 1))
    masks = {
        "begin_mask": 0,
        "end_mask": 0,
        "ellipsis_mask": 0,
        "new_axis_mask": 0,
        "shrink_axis_mask": 1,
        "offset": False,
    }
    (count,) = g.op("STRIDED_SLICE", [shape, begin, end, step], masks, ("int32",))
    parts = [count, *(g.constant(n, "int32") for n in (10, 10, 4))]
    (target,) = g.op("PACK", parts, {"values_count": 4, "axis": 0}, ("int32",))
    g.op("TRANSPOSE_CONV", [target, g.weights(4, 2, 2, 3), x], {"padding": 1, "stride_h": 2, "stride_w": 2, **NO_FUSED})
    return g.model()


def test_shapes_are_folded_and_fixed() -> None:
    model = upsampled()
    graph = view(model)
    spec = replace(graph.tensors[graph.inputs[0]], shape_signature=(-1, 5, 5, 3))
    model = with_tensor(model, graph.inputs[0], spec)
    changed = portable_form(model, ())
    assert names(changed.model) == ["TRANSPOSE_CONV"]
    assert [r.op for r in changed.rewrites] == ["SHAPE", "STRIDED_SLICE", "PACK"]
    assert changed.origins == (3,)
    assert view(changed.model).tensors[view(changed.model).inputs[0]].shape_signature is None
    assert_same_function(model, changed.model)


def test_mean_becomes_a_pool_where_all_runtimes_divide_alike() -> None:
    model = mean((1, 4, 6, 5), [1, 2], keep=False)
    changed = portable_form(model, [by_name("litert-ref"), by_name("litert-xnnpack"), by_name("tflm")])
    assert names(changed.model) == ["AVERAGE_POOL_2D", "RESHAPE"]
    assert changed.rewrites[0].bytes == 0
    assert_same_function(model, changed.model)
    kept = pool(1, 3, 2)
    assert portable_form(kept, [by_name("litert-ref"), by_name("litert-xnnpack")]).rewrites == ()


CONV = {"padding": 0, "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
ADDED = {"pot_scale_int16": False}


def linear(g: FloatGraph, op: str) -> int:
    """Write a linear operator with four output channels."""
    if op == "CONV_2D":
        return g.op(op, [g.given(1, 5, 4, 3), g.weights(4, 3, 3, 3), g.bias(4)], {**CONV, **NO_FUSED})[0]
    if op == "DEPTHWISE_CONV_2D":
        options = {**CONV, **NO_FUSED, "depth_multiplier": 1}
        return g.op(op, [g.given(1, 5, 4, 4), g.weights(1, 3, 3, 4), g.bias(4)], options)[0]
    options = {**NO_FUSED, "weights_format": 0, "keep_num_dims": False}
    return g.op(op, [g.given(2, 6), g.weights(4, 6), -1], options)[0]


@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_constants_become_part_of_the_operator_before_them(op: str) -> None:
    g = FloatGraph(8)
    (y,) = g.op("MUL", [linear(g, op), g.bias(4)], NO_FUSED)
    (y,) = g.op("SUB", [g.constant(0.7), y], {**NO_FUSED, **ADDED})
    (y,) = g.op("DIV", [y, g.constant([0.5, 2, -3, 1])], NO_FUSED)
    g.op("ADD", [y, g.bias(4)], {"fused_activation_function": 1, **ADDED})
    changed = portable_form(g.model())
    assert names(changed.model) == [op]
    assert changed.origins == (0,)
    assert [(r.index, r.op) for r in changed.rewrites] == [(1, "MUL"), (2, "SUB"), (3, "DIV"), (4, "ADD")]
    assert_same_function(g.model(), changed.model)


def test_constants_behind_an_activation_or_another_reader_stay() -> None:
    g = FloatGraph(8)
    x = linear(g, "CONV_2D")
    (y,) = g.op("ADD", [x, g.bias(4)], {**NO_FUSED, **ADDED})
    g.op("MUL", [x, y], NO_FUSED)
    g.op("DIV", [g.constant(2.0), linear(g, "CONV_2D")], NO_FUSED)
    changed = portable_form(g.model())
    assert names(changed.model) == names(g.model())
    assert_same_function(g.model(), changed.model)


@pytest.mark.parametrize("shape", [(1, 5, 4, 3), (2, 3), (2, 5, 3)])
@pytest.mark.parametrize("op", ["MUL", "DIV"])
def test_a_product_by_channel_becomes_a_depthwise_convolution(shape: tuple[int, ...], op: str) -> None:
    g = FloatGraph(9)
    g.op(op, [g.given(*shape), g.constant([0.5, -2, 3])], {"fused_activation_function": 1})
    changed = portable_form(g.model())
    assert op not in names(changed.model)
    assert "DEPTHWISE_CONV_2D" in names(changed.model)
    assert_same_function(g.model(), changed.model)


def test_a_quotient_by_zero_stays() -> None:
    g = FloatGraph(9)
    g.op("DIV", [g.given(1, 5, 4, 3), g.constant([0.5, 0, 3])], NO_FUSED)
    assert names(portable_form(g.model()).model) == ["DIV"]


@pytest.mark.parametrize("shape", [(1, 5, 4, 3), (2, 3)])
def test_prelu_by_channel_becomes_the_sum_of_its_halves(shape: tuple[int, ...]) -> None:
    g = FloatGraph(10)
    g.op("PRELU", [g.given(*shape), g.constant([0.5, -2, 0.1])])
    changed = portable_form(g.model())
    assert [n for n in names(changed.model) if n != "RESHAPE"] == ["RELU", "MINIMUM", "DEPTHWISE_CONV_2D", "ADD"]
    assert_same_function(g.model(), changed.model)


@pytest.mark.parametrize(
    ("slope", "becomes"), [(0.3, ["DEPTHWISE_CONV_2D", "MAXIMUM"]), (-0.3, ["LEAKY_RELU"]), (1.5, ["LEAKY_RELU"])]
)
def test_prelu_with_one_slope(slope: float, becomes: list[str]) -> None:
    g = FloatGraph(10)
    g.op("PRELU", [g.given(1, 5, 4, 3), g.constant([slope] * 3)])
    changed = portable_form(g.model())
    assert names(changed.model) == becomes
    assert_same_function(g.model(), changed.model)


@pytest.mark.parametrize("op", ["PRELU", "LEAKY_RELU"])
def test_slopes_from_0_to_1_become_a_maximum(op: str) -> None:
    g = FloatGraph(11)
    x = g.given(1, 5, 4, 3)
    if op == "PRELU":
        g.op(op, [x, g.constant([0.5, 0, 1])])
    else:
        g.op(op, [x], {"alpha": 0.3})
    changed = portable_form(g.model())
    assert names(changed.model) == ["DEPTHWISE_CONV_2D", "MAXIMUM"]
    assert_same_function(g.model(), changed.model)


def test_softmax_at_the_end_is_dropped_on_request() -> None:
    g = FloatGraph(11)
    g.unary("SOFTMAX", linear(g, "FULLY_CONNECTED"), {"beta": 1.0})
    kept, dropped = portable_form(g.model()), portable_form(g.model(), drop_softmax=True)
    assert names(kept.model) == ["FULLY_CONNECTED", "SOFTMAX"]
    assert names(dropped.model) == ["FULLY_CONNECTED"]
    assert [(r.op, r.cost) for r in dropped.rewrites] == [("SOFTMAX", "outputs are logits")]
    given = np.random.default_rng(5).normal(0, 1, (2, 6)).astype(np.float32)
    (logits,), (probabilities,) = outputs(dropped.model, given), outputs(g.model(), given)
    powers = np.exp(logits)
    np.testing.assert_allclose(powers / powers.sum(1, keepdims=True), probabilities, rtol=1e-5)


def test_softmax_inside_stays() -> None:
    g = FloatGraph(11)
    g.unary("RELU", g.unary("SOFTMAX", g.given(2, 6), {"beta": 1.0}))
    assert names(portable_form(g.model(), drop_softmax=True).model) == ["SOFTMAX", "RELU"]


@pytest.mark.parametrize("axes", [[1, 2], [3]])
def test_a_sum_becomes_a_depthwise_convolution_with_weights_of_one(axes: list[int]) -> None:
    g = FloatGraph(12)
    g.op("SUM", [g.given(1, 4, 3, 5), g.constant(axes, "int32")], {"keep_dims": False})
    changed = portable_form(g.model())
    assert [n for n in names(changed.model) if n != "RESHAPE"] == ["DEPTHWISE_CONV_2D"]
    assert_same_function(g.model(), changed.model)


def test_a_squared_difference_and_a_quotient_become_what_tables_and_grids_take() -> None:
    g = FloatGraph(13)
    x, y = g.given(1, 4, 3, 5), g.given(1, 1, 1, 5)
    (squared,) = g.op("SQUARED_DIFFERENCE", [x, y], {})
    g.op("DIV", [squared, y], {"fused_activation_function": 1})
    changed = portable_form(g.model())
    assert names(changed.model) == ["SUB", "SQUARE", "DIV", "MUL"]
    assert_same_function(g.model(), changed.model)


MODERN = tuple(map(by_name, ("litert-ref", "litert-xnnpack", "tflm")))


def named_obstacles(g: FloatGraph, runtimes: tuple[Profile, ...] = MODERN) -> list[tuple[int, str]]:
    found = obstacles(g.model(), runtimes)
    assert all(o.why and o.kept and o.instead for o in found)
    return [(o.index, o.op) for o in found]


def test_a_convolution_with_an_activation_meets_no_obstacle() -> None:
    g = FloatGraph(14)
    g.unary("HARD_SWISH", linear(g, "CONV_2D"))
    assert named_obstacles(g) == []


def test_obstacles_are_named_with_their_index_in_the_source() -> None:
    g = FloatGraph(14)
    y = g.op("MEAN", [linear(g, "CONV_2D"), g.constant([1, 2], "int32")], {"keep_dims": False})[0]
    z = g.unary("SOFTMAX", y, {"beta": 1.0})
    (w,) = g.op("BATCH_MATMUL", [z, g.given(4, 3)], {"adj_x": False, "adj_y": False})
    g.unary("L2_NORMALIZATION", w, NO_FUSED)
    assert named_obstacles(g) == [(2, "SOFTMAX"), (3, "BATCH_MATMUL"), (4, "L2_NORMALIZATION")]
    inside, _, last = obstacles(g.model(), MODERN)
    assert inside.kept.startswith("in float or int16")
    assert last.kept.startswith("as the last operator")


def test_a_runtime_without_tables_is_named() -> None:
    g = FloatGraph(14)
    g.unary("HARD_SWISH", linear(g, "CONV_2D"))
    runtimes = (*MODERN, by_name("tf-1.15-ref"))
    assert named_obstacles(g, runtimes) == [(1, "HARD_SWISH")]
    (obstacle,) = obstacles(g.model(), runtimes)
    assert "tf-1.15-ref takes no form" in obstacle.why
    assert "RELU" in obstacle.instead


@each("seed", range(40))
def test_random_models_keep_their_function(seed: int) -> None:
    model = random_graph(seed)
    changed = portable_form(model)
    plans = [make_plan(one, by_name("litert-ref")) for one in (model, changed.model)]
    for given in samples(model, seed, 2):
        before, after = (run(plan, dict(zip(plan.inputs, given.values(), strict=True))).values for plan in plans)
        for one, other in zip(plans[0].outputs, plans[1].outputs, strict=True):
            wide = np.abs(before[one]).max(initial=1.0)
            np.testing.assert_allclose(after[other], before[one], rtol=1e-4, atol=1e-4 * wide)


@pytest.mark.parametrize("shape", [(1, 0, 4, 3), (1, 5000, 5000, 3)])
def test_empty_and_huge_windows_stay(shape: tuple[int, ...]) -> None:
    g = FloatGraph(15)
    g.op("MEAN", [g.given(*shape), g.constant([1, 2], "int32")], {"keep_dims": True})
    assert names(portable_form(g.model()).model) == ["MEAN"]


def test_a_broken_operator_is_refused() -> None:
    g = FloatGraph(16)
    g.op("MEAN", [g.given(1, 4, 4, 3), g.constant([1, 2], "int32")], {"keep_dims": True})
    graph = view(g.model()).record
    broken = replace(graph, operators=(replace(graph.operators[0], inputs=graph.operators[0].inputs[:1]),))
    with pytest.raises(UnsupportedError, match="MEAN"):
        portable_form(with_graph(g.model(), broken))


@pytest.mark.parametrize("with_bias", [False, True])
def test_a_transposed_convolution_fuses_no_activation(with_bias: bool) -> None:
    g = FloatGraph(12)
    shape = g.constant([1, 10, 8, 4], "int32")
    operands = [shape, g.weights(4, 2, 2, 3), g.given(1, 5, 4, 3), *([g.bias(4)] if with_bias else [])]
    options = {"padding": 1, "stride_w": 2, "stride_h": 2, "fused_activation_function": 1}
    g.op("TRANSPOSE_CONV", operands, options, version=4)
    changed = portable_form(g.model())
    assert names(changed.model) == ["TRANSPOSE_CONV", "RELU"]
    assert [op.code.version for op in view(changed.model).ops] == [3 if with_bias else 1, 1]
    assert_same_function(g.model(), changed.model)
