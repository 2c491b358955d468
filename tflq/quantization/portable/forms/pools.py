"""Means over windows as AVERAGE_POOL_2D, means and sums as DEPTHWISE_CONV_2D with equal weights.

Kernels of MEAN scale integer sums in as many ways as there are runtimes. Those of AVERAGE_POOL_2D divide them, which is
the same in all known ones: a trial proof decides. Where it is not, a convolution with the weight 1 / N, or 1 for SUM,
requantizes as every other convolution of the model does, at the price of N weights for each channel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from math import prod

import numpy as np

from tflq.engine.profiles import Profile
from tflq.model.ir import Buffer, Model, OperatorView, Quantization, Subgraph, TensorSpec, TensorType
from tflq.proof import Word
from tflq.proof.operator import Bound, bind
from tflq.proof.proof import contrast
from tflq.quantization.portable.forms.editing import Editing
from tflq.quantization.portable.forms.operators import VALID, fits, reshaped, write_depthwise, write_reshape
from tflq.quantization.portable.forms.rewrite import Rewrite, rewrite_of

WHY = "runtimes scale its sums in different ways, but not those of what replaces it"


def mean_form(
    runtimes: Sequence[Profile], shrinking: Collection[int], editing: Editing, operator: OperatorView
) -> Rewrite | None:
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
    if not fits(*image[1:]):
        return None
    is_mean = operator.name == "MEAN" and operator.index not in shrinking
    is_pool = is_mean and pools_agree((height, width), tuple(runtimes))
    made, steps = operator.output(), ["AVERAGE_POOL_2D" if is_pool else "DEPTHWISE_CONV_2D"]
    weight = 1 / (height * width) if operator.name == "MEAN" else 1.0

    def write(taken: int, result: int) -> None:
        if is_pool:
            _pool(editing, taken, result, operator.index, (height, width))
        else:
            _write_window(editing, operator, taken, result, (height, width), weight=weight)

    taken = editing.new(operator.inputs[0])
    if list(source.shape) != image:
        taken = reshaped(editing, operator, taken, image)
        steps.insert(0, "RESHAPE")
    result = editing.new(operator.outputs[0])
    if list(made.shape) == [image[0], 1, 1, image[3]]:
        write(taken, result)
    else:
        window = editing.tensor(made, "/window", shape=(image[0], 1, 1, image[3]))
        write(taken, window)
        write_reshape(editing, operator, window, result, made)
        steps.append("RESHAPE")
    return rewrite_of(operator, steps, WHY, 0 if is_pool else height * width * image[3])


def average_pool_form(runtimes: Sequence[Profile], editing: Editing, operator: OperatorView) -> Rewrite | None:
    """Write an AVERAGE_POOL_2D whose windows all hold the same number of elements, if runtimes divide differently."""
    source, options, made = operator.input_specs[0], operator.options, operator.output()
    if source is None or options is None or source.type != TensorType.FLOAT32 or not is_known(source, 1):
        return None
    window = int(options["filter_height"]), int(options["filter_width"])
    strides = int(options["stride_h"]), int(options["stride_w"])
    if not is_unpadded(source, made, window, strides) or pools_agree(window, tuple(runtimes)):
        return None
    if not fits(*window, source.shape[3]):
        return None
    fused = int(options["fused_activation_function"])
    taken, result = editing.new(operator.inputs[0]), editing.new(operator.outputs[0])
    _write_window(editing, operator, taken, result, window, strides, fused, 1 / prod(window))
    return rewrite_of(operator, ["DEPTHWISE_CONV_2D"], WHY, window[0] * window[1] * source.shape[3])


@cache
def pools_agree(window: tuple[int, int], runtimes: tuple[Profile, ...]) -> bool:
    """Return whether AVERAGE_POOL_2D over a window of int8 codes is proved equal on all runtimes that take it."""
    model = _trial(window)
    bound = [runtime for runtime in runtimes if isinstance(bind(model, 0, runtime), Bound)]
    return bool(bound) and all(v.word == Word.EQUAL for v in contrast(model, 0, bound[0], bound[1:]))


def _trial(window: tuple[int, int]) -> Model:
    """Return a model that averages one window."""
    q = Quantization(np.ones(1, np.float32), np.zeros(1, np.int64))
    x, y = (
        TensorSpec(name, TensorType.INT8, (1, *size, 8), quantization=q)
        for name, size in (("x", window), ("y", (1, 1)))
    )
    editing = Editing(Model(3, (), (Subgraph((x, y), (0,), (1,), ()),), (Buffer(),)))
    _pool(editing, editing.new(0), editing.new(1), -1, window, version=2)
    return editing.result()


def _pool(editing: Editing, taken: int, result: int, origin: int, window: tuple[int, int], version: int = 1) -> None:
    fields = {"filter_height": window[0], "filter_width": window[1], "stride_h": 1, "stride_w": 1}
    fields |= {"padding": VALID, "fused_activation_function": 0}
    editing.operator("AVERAGE_POOL_2D", [taken], [result], origin, "Pool2DOptions", version, **fields)


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
    """Return whether dimensions from `start` on are not 0 and cannot change at run time."""
    sizes = (*(spec.shape_signature or spec.shape)[start:], *spec.shape[start:])
    return len(spec.shape) > start and min(sizes, default=0) > 0
