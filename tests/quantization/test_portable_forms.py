"""Forms of float operators that become portable: LiteRT computes the same function before and after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.float_graphs import FloatGraph
from tflq.flatbuf import write
from tflq.ir import Model, view
from tflq.profiles import by_name
from tflq.quantization.portable.forms.floats import portable_form
from tflq.surgery.edit import with_tensor

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
