"""RESIZE_BILINEAR to a multiple of the size: repeated pixels, then a mean over their neighbours.

Linear interpolation by a whole factor f is RESIZE_NEAREST_NEIGHBOR by f and a window over the repeated pixels. With
half-pixel centers the window is centered: f equal weights, or for an even f, f + 1 weights of which the ends are half.
Without, it begins at the pixel itself. Pixels beyond the border repeat those at the border, as MIRROR_PAD SYMMETRIC
gives, because the outermost f are equal. Aligned corners leave windows over the border out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.model.ir import OperatorView, TensorType
from tflq.model.ir.schema import enum
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.operators import fits, write_depthwise
from tflq.quantization.portable.forms.pools import is_known
from tflq.quantization.portable.forms.rewrite import Rewrite, rewrite_of

WHY = "runtimes interpolate codes in different ways; they repeat pixels and convolve alike"
#: The greatest factor that a form takes.
_MOST_FACTOR = 64


@dataclass(frozen=True, slots=True)
class _Axis:
    """One direction: the factor, repeated pixels before and after the image, and the window."""

    factor: int
    before: int
    after: int
    window: tuple[float, ...]


def resize_form(editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write a RESIZE_BILINEAR whose factors are whole numbers."""
    source, made = operator.input_specs[0], operator.output()
    if source is None or source.type != TensorType.FLOAT32 or not (is_known(source, 1) and is_known(made, 1)):
        return None
    pairs = zip(source.shape[1:3], made.shape[1:3], strict=True)
    axes = [_axis(operator, size, target) for size, target in pairs]
    if None in axes or len(source.shape) != 4:
        return None
    rows, columns = (axis for axis in axes if axis is not None)
    if not fits(rows.factor + 1, columns.factor + 1, source.shape[3]):
        return None
    tensor, steps = editing.new(operator.inputs[0]), list[str]()
    batch, height, width, channels = source.shape
    height, width = height * rows.factor, width * columns.factor
    if (height, width) != source.shape[1:3]:
        result = editing.tensor(editing.spec(tensor), "/repeated", shape=(batch, height, width, channels))
        size = editing.constant("size", np.array([height, width], np.int32))
        editing.operator(
            "RESIZE_NEAREST_NEIGHBOR", [tensor, size], [result], operator.index, "ResizeNearestNeighborOptions", 2
        )
        tensor = result
        steps.append("RESIZE_NEAREST_NEIGHBOR")
    padding = np.array([[0, 0], [rows.before, rows.after], [columns.before, columns.after], [0, 0]], np.int32)
    if padding.any():
        shape = tuple(int(n) for n in np.array([batch, height, width, channels]) + padding.sum(1))
        result = editing.tensor(editing.spec(tensor), "/bordered", shape=shape)
        mode = enum("MirrorPadMode")["SYMMETRIC"]
        operands = [tensor, editing.constant("border", padding)]
        editing.operator("MIRROR_PAD", operands, [result], operator.index, "MirrorPadOptions", mode=mode)
        tensor = result
        steps.append("MIRROR_PAD")
    window = np.outer(rows.window, columns.window).astype(np.float32)
    weights = np.repeat(window[None, :, :, None], channels, 3)
    bias = np.zeros(channels, np.float32)
    write_depthwise(editing, operator, tensor, editing.new(operator.outputs[0]), weights, bias)
    steps.append("DEPTHWISE_CONV_2D")
    return rewrite_of(operator, steps, WHY, weights.size)


def _axis(operator: OperatorView, size: int, target: int) -> _Axis | None:
    """Return how one direction is interpolated; None if its factor is not whole."""
    options = operator.options
    if options is None or size < 1:
        return None
    if options["align_corners"]:
        if size == 1 or (target - 1) % (size - 1):
            return _Axis(1, 0, 0, (1.0,)) if size == target else None
        factor = (target - 1) // (size - 1)
        return _Axis(factor, 0, 0, (1 / factor,) * factor) if 0 < factor <= _MOST_FACTOR else None
    factor, rest = divmod(target, size)
    if rest or not 0 < factor <= _MOST_FACTOR:
        return None
    if not options["half_pixel_centers"]:
        return _Axis(factor, 0, factor - 1, (1 / factor,) * factor)
    ends, inner = (0.5 / factor, factor - 1) if factor % 2 == 0 else (1 / factor, factor - 2)
    window = (1.0,) if factor == 1 else (ends, *[1 / factor] * inner, ends)
    return _Axis(factor, factor // 2, factor // 2, window)
