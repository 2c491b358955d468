"""Operators with one constant for each channel, by DEPTHWISE_CONV_2D.

For slopes a from 0 to 1, PRELU and LEAKY_RELU are MAXIMUM(x, a * x). A table takes slopes of one value, too, but looks
up an entry at the cost of several multiplications.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import OperatorView, TensorSpec, TensorType
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.operators import reshaped, write_depthwise, write_reshape
from tflq.quantization.portable.forms.pools import is_known
from tflq.quantization.portable.forms.rewrite import Rewrite, rewrite_of

Floats = NDArray[np.float32]

WHY_PRODUCT = "runtimes round a product with a constant in different ways; a convolution requantizes as all others do"
WHY_LEAKY = "runtimes round its kernel in different ways; a maximum does not round"
WHY_PRELU = "runtimes round its kernel in different ways; its halves are a table and a convolution"


def product_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a MUL or DIV by one number for each channel."""
    if len(operator.inputs) != 2 or operator.options is None:
        return None
    positions = (0, 1) if operator.name == "MUL" else (0,)
    for position in positions:
        factors = channels_of(operator, operator.inputs[1 - position], operator.inputs[position])
        if factors is None or factors.size == 1:
            continue
        with np.errstate(divide="ignore"):
            weights = factors if operator.name == "MUL" else (1 / factors).astype(np.float32)
        if not np.isfinite(weights).all():
            return None
        fused = int(operator.options["fused_activation_function"])
        taken = editing.new(operator.inputs[position])
        steps = _write_scaled(editing, operator, taken, weights, fused)
        return rewrite_of(operator, steps, WHY_PRODUCT, weights.size)
    return None


def prelu_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a PRELU with slopes a as MAXIMUM(x, a * x), or as RELU(x) + a * MINIMUM(x, 0); one slope as LEAKY_RELU."""
    slopes = channels_of(operator, operator.inputs[1], operator.inputs[0])
    if slopes is None:
        return None
    if (slopes >= 0).all() and (slopes <= 1).all() and len(operator.output().shape) == 4:
        return _write_maximum(editing, operator, slopes)
    taken, result, made = editing.new(operator.inputs[0]), editing.new(operator.outputs[0]), operator.output()
    if (slopes == slopes[0]).all():
        editing.operator("LEAKY_RELU", [taken], [result], operator.index, "LeakyReluOptions", alpha=float(slopes[0]))
        return rewrite_of(operator, ["LEAKY_RELU"], WHY_PRELU, 0)
    positive, negative, scaled = (editing.tensor(made, end) for end in ("/positive", "/negative", "/scaled"))
    zero = editing.constant("zero", np.zeros(1, np.float32))
    editing.operator("RELU", [taken], [positive], operator.index)
    editing.operator("MINIMUM", [taken, zero], [negative], operator.index, "MaximumMinimumOptions")
    steps = _write_scaled(editing, operator, negative, slopes, 0, scaled)
    editing.operator("ADD", [positive, scaled], [result], operator.index, "AddOptions", pot_scale_int16=False)
    return rewrite_of(operator, ["RELU", "MINIMUM", *steps, "ADD"], WHY_PRELU, slopes.size)


def leaky_relu_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a LEAKY_RELU of an image with a slope a from 0 to 1 as MAXIMUM(x, a * x)."""
    spec, alpha = operator.output(), 0.0 if operator.options is None else float(operator.options["alpha"])
    if spec.type != TensorType.FLOAT32 or len(spec.shape) != 4 or not is_known(spec, 1) or not 0 <= alpha <= 1:
        return None
    return _write_maximum(editing, operator, np.full(spec.shape[3], alpha, np.float32))


def _write_maximum(editing: Editing, operator: OperatorView, slopes: Floats) -> Rewrite:
    slopes = np.broadcast_to(slopes, operator.output().shape[3])
    taken, result = editing.new(operator.inputs[0]), editing.new(operator.outputs[0])
    scaled = editing.tensor(operator.output(), "/scaled")
    steps = _write_scaled(editing, operator, taken, slopes, 0, scaled)
    editing.operator("MAXIMUM", [taken, scaled], [result], operator.index, "MaximumMinimumOptions")
    return rewrite_of(operator, [*steps, "MAXIMUM"], WHY_LEAKY, 5 * slopes.size)


def channels_of(operator: OperatorView, constant: int, data: int) -> Floats | None:
    """Return the numbers that a constant has for the channels of a computed float tensor, [C] or [1].

    None if it is no constant, differs in other places than channels, or changes the shape of the data.
    """
    graph = operator.graph
    values, spec = graph.constant(constant), graph.tensors[data]
    if values is None or values.dtype != np.float32 or spec.type != TensorType.FLOAT32 or not is_known(spec, 1):
        return None
    if constant in graph.inputs or graph.maker(constant) is not None or graph.constant(data) is not None:
        return None
    fits = values.size == 1 or values.shape[-1] == values.size == spec.shape[-1]
    is_same = operator.output().shape == spec.shape and values.size > 0 and np.isfinite(values).all()
    return values.reshape(-1) if fits and is_same else None


def _write_scaled(
    editing: Editing, operator: OperatorView, taken: int, factors: Floats, fused: int, result: int | None = None
) -> list[str]:
    """Write a DEPTHWISE_CONV_2D that multiplies every channel, with a RESHAPE around where there is no image."""
    spec = editing.spec(taken)
    result = editing.new(operator.outputs[0]) if result is None else result
    weights = factors.reshape(1, 1, 1, -1).astype(np.float32)
    bias = np.zeros(factors.size, np.float32)
    if len(spec.shape) == 4:
        write_depthwise(editing, operator, taken, result, weights, bias, fused=fused)
        return ["DEPTHWISE_CONV_2D"]
    image = reshaped(editing, operator, taken, _image(spec))
    scaled = editing.tensor(editing.spec(image), "/scaled")
    write_depthwise(editing, operator, image, scaled, weights, bias, fused=fused)
    write_reshape(editing, operator, scaled, result, spec)
    return ["RESHAPE", "DEPTHWISE_CONV_2D", "RESHAPE"]


def _image(spec: TensorSpec) -> tuple[int, ...]:
    first, *inner, channels = spec.shape
    return first, 1, prod(inner), channels
