"""Means and sums over windows as DEPTHWISE_CONV_2D with equal weights.

Kernels of MEAN and AVERAGE_POOL_2D divide integer sums in as many ways as there are runtimes. A convolution with the
weight 1 / N, or 1, requantizes as every other convolution of the model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tflq.ir import OperatorView, TensorSpec, TensorType
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.operators import reshaped, write_depthwise, write_reshape
from tflq.quantization.portable.forms.rewrite import Rewrite

WHY = "runtimes divide its sums in different ways; a convolution requantizes as all others do"


def mean_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a MEAN or SUM over neighbouring axes: [before, axes, behind] as an image, one window over the axes."""
    source, axes = operator.input_specs[0], editing.graph.constant(operator.inputs[1])
    if source is None or axes is None or source.type != TensorType.FLOAT32 or not is_known(source, 1):
        return None
    rank = len(source.shape)
    reduced = sorted({int(axis) % rank for axis in axes.reshape(-1)})
    if not reduced or reduced != list(range(reduced[0], reduced[-1] + 1)) or not (reduced[0] or is_known(source, 0)):
        return None
    first, last = reduced[0], reduced[-1] + 1
    height, width = (source.shape[first:last]) if len(reduced) == 2 else (1, prod(source.shape[first:last]))
    image = [prod(source.shape[:first]), height, width, prod(source.shape[last:])]
    made, steps = operator.output(), ["DEPTHWISE_CONV_2D"]
    weight = 1 / (height * width) if operator.name == "MEAN" else 1.0
    taken = editing.new(operator.inputs[0])
    if list(source.shape) != image:
        taken = reshaped(editing, operator, taken, image)
        steps.insert(0, "RESHAPE")
    result = editing.new(operator.outputs[0])
    if list(made.shape) == [image[0], 1, 1, image[3]]:
        _write_window(editing, operator, taken, result, (height, width), weight=weight)
    else:
        window = editing.tensor(made, "/window", shape=(image[0], 1, 1, image[3]))
        _write_window(editing, operator, taken, window, (height, width), weight=weight)
        write_reshape(editing, operator, window, result, made)
        steps.append("RESHAPE")
    return _rewrite(operator, steps, height * width * image[3])


def average_pool_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write an AVERAGE_POOL_2D whose windows all hold the same number of elements."""
    source, options, made = operator.input_specs[0], operator.options, operator.output()
    if source is None or options is None or source.type != TensorType.FLOAT32 or not is_known(source, 1):
        return None
    window = int(options["filter_height"]), int(options["filter_width"])
    strides = int(options["stride_h"]), int(options["stride_w"])
    if not is_unpadded(source, made, window, strides):
        return None
    fused = int(options["fused_activation_function"])
    taken, result = editing.new(operator.inputs[0]), editing.new(operator.outputs[0])
    _write_window(editing, operator, taken, result, window, strides, fused, 1 / prod(window))
    return _rewrite(operator, ["DEPTHWISE_CONV_2D"], window[0] * window[1] * source.shape[3])


def is_unpadded(source: TensorSpec, made: TensorSpec, window: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether windows over the image lie inside it, so that all hold the same number of elements."""
    if len(source.shape) != 4 or len(made.shape) != 4 or 0 in strides:
        return False
    pairs = zip(source.shape[1:3], made.shape[1:3], window, strides, strict=True)
    return all((count - 1) * stride + width <= size for size, count, width, stride in pairs)


def _write_window(
    editing: Editing,
    operator: OperatorView,
    taken: int,
    result: int,
    window: tuple[int, int],
    strides: tuple[int, int] = (1, 1),
    fused: int = 0,
    weight: float = 1.0,
) -> None:
    channels = editing.spec(taken).shape[3]
    weights = np.full((1, *window, channels), weight, np.float32)
    write_depthwise(editing, operator, taken, result, weights, np.zeros(channels, np.float32), strides, fused)


def is_known(spec: TensorSpec, start: int) -> bool:
    """Return whether dimensions from `start` on cannot change at run time."""
    return len(spec.shape) > start and -1 not in (spec.shape_signature or spec.shape)[start:]


def _rewrite(operator: OperatorView, steps: Sequence[str], count: int) -> Rewrite:
    name = operator.output().name or ""
    return Rewrite(operator.index, operator.name, name, ", ".join(steps), WHY, count)
