"""Operators with weights narrowed to one output channel, and to the window of a box if it is inside the image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tflq.engine.kernels.facts.rules import WITH_CHANNELS, Places
from tflq.model.ir import Model, OperatorView, view
from tflq.model.ir.schema import enum
from tflq.model.surgery.edit import with_constant, with_option, with_tensor
from tflq.typing import Array

Sample: TypeAlias = "tuple[Array, ...]"
#: The narrowed operator's elements within the first output of the original.
Selection: TypeAlias = "tuple[slice, ...]"
Narrowed: TypeAlias = "tuple[Model, Sample, Selection]"


def channel_narrowings(model: Model, sample: Sample, box: Selection, name: str) -> Iterator[Narrowed]:
    """Yield the box, if its window is inside the image, then its channel; for a dense layer, one row of it."""
    graph = view(model)
    operator, places = graph.op(0), WITH_CHANNELS[name]
    weights = graph.constant(operator.inputs[places.weights])
    if weights is None or len(sample) != 1:
        return
    if name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        window = window_of(operator, sample[0], box, weights.shape[1:3])
        if window is not None:
            yield from _one_channel(without_padding(model), sample[0], places, (box[0], *window), box)
        for read, written in edge_of(operator, sample[0], box, weights.shape[1:3]):
            yield from _one_channel(model, sample[0], places, (box[0], *read), (box[0], *written, box[-1]))
    one_row = name != "FULLY_CONNECTED" or sample[0].ndim == len(box) == 2
    first = box[0] if one_row else slice(None)
    whole = (slice(None),) * (len(box) - 2)
    yield from _one_channel(model, sample[0], places, (first,), (first, *whole, box[-1]))


def window_of(operator: OperatorView, x: Array, box: Selection, kernel: tuple[int, ...]) -> Selection | None:
    """Return the rows and columns of the input that the box reads, None if some lie outside."""
    options = operator.options
    if options is None or len(box) != 4:
        return None
    output = operator.output().shape
    ranges = []
    for axis, side in ((1, "h"), (2, "w")):
        dilation = int(options.get(f"dilation_{side}_factor", 1))
        stride, reach = int(options[f"stride_{side}"]), (kernel[axis - 1] - 1) * dilation + 1
        extent = x.shape[axis]
        before = 0
        if int(options["padding"]) == enum("Padding")["SAME"]:
            before = max((output[axis] - 1) * stride + reach - extent, 0) // 2
        start, stop = box[axis].start * stride - before, (box[axis].stop - 1) * stride - before + reach
        if start < 0 or stop > extent:
            return None
        ranges.append(slice(start, stop))
    return tuple(ranges)


def edge_of(
    operator: OperatorView, x: Array, box: Selection, kernel: tuple[int, ...]
) -> Iterator[tuple[Selection, Selection]]:
    """Yield input and output ranges around the box for which padding SAME pads as before.

    At the other end of the range, padding replaces data, so elements that read it change.
    """
    options = operator.options
    if options is None or len(box) != 4 or int(options["padding"]) != enum("Padding")["SAME"]:
        return
    output = operator.output().shape
    ranges = []
    for axis, side in ((1, "h"), (2, "w")):
        reach = (kernel[axis - 1] - 1) * int(options.get(f"dilation_{side}_factor", 1)) + 1
        ranges.append(_same_padding(box[axis], x.shape[axis], output[axis], int(options[f"stride_{side}"]), reach))
    if all(pair is not None for pair in ranges):
        read, written = (tuple(pair[k] for pair in ranges if pair is not None) for k in (0, 1))
        yield read, written


def _same_padding(box: slice, extent: int, outputs: int, stride: int, reach: int) -> tuple[slice, slice] | None:
    """Return the shortest range of `extent` elements, and its outputs, for which the box reads the same elements."""
    before = max((outputs - 1) * stride + reach - extent, 0) // 2
    first, last = max(box.start * stride - before, 0), min((box.stop - 1) * stride - before + reach, extent)
    for size in range(last - first, extent + 1):
        count = -(-size // stride)
        shift = max((count - 1) * stride + reach - size, 0) // 2 - before
        for start in range(max(box.stop - count, 0), min(box.start, outputs - count) + 1):
            at = start * stride + shift
            if 0 <= at <= first and last <= at + size <= extent:
                return slice(at, at + size), slice(start, start + count)
    return None


def without_padding(model: Model) -> Model:
    """Return the model with all windows inside the image."""
    return with_option(model, "padding", enum("Padding")["VALID"])


def with_shape(model: Model, tensor: int, shape: tuple[int, ...]) -> Model:
    """Return the model with another shape of a tensor in the first subgraph."""
    spec = replace(view(model).tensors[tensor], shape=tuple(map(int, shape)), shape_signature=None)
    return with_tensor(model, tensor, spec)


def _one_channel(model: Model, x: Array, places: Places, read: Selection, written: Selection) -> Iterator[Narrowed]:
    """Yield the model that reads the elements `read` (leading dimensions) and writes `written`, one channel."""
    graph, channel = view(model), written[-1].start
    operator = graph.op(0)
    output = operator.outputs[0]
    narrow = x[read]
    if places is WITH_CHANNELS["DEPTHWISE_CONV_2D"]:
        if graph.tensors[output].shape[-1] != x.shape[-1]:  # several output channels per input channel
            return
        narrow = narrow[..., channel : channel + 1]
    edited = _of_channel(model, operator.inputs[places.weights], places.axis, channel)
    if len(operator.inputs) > places.bias and operator.inputs[places.bias] >= 0:
        edited = _of_channel(edited, operator.inputs[places.bias], 0, channel)
    shape = np.empty(graph.tensors[output].shape, np.bool_)[written].shape
    if places is WITH_CHANNELS["TRANSPOSE_CONV"]:
        edited = with_constant(edited, operator.inputs[0], np.array(shape, np.int32))
    edited = with_shape(with_shape(edited, operator.inputs[places.data], narrow.shape), output, shape)
    yield edited, (np.ascontiguousarray(narrow),), written


def _of_channel(model: Model, tensor: int, dimension: int, channel: int) -> Model:
    """Return the model with one channel of a constant, and the scale of this channel."""
    spec = view(model).tensors[tensor]
    value = view(model).constant(tensor)
    if value is None:
        return model
    edited = with_constant(model, tensor, np.take(value, [channel], dimension))
    q = spec.quantization
    if q is None or q.scale.size < 2:
        return edited
    points = q.zero_point[channel : channel + 1] if q.zero_point.size == q.scale.size else q.zero_point[:1]
    q = replace(q, scale=q.scale[channel : channel + 1], zero_point=points, min=None, max=None)
    return with_tensor(edited, tensor, replace(view(edited).tensors[tensor], quantization=q))
