"""One operator narrowed to a box of its output: smaller shapes, the same arithmetic inside the box.

Windows that reach over an edge are left as they are, since what an implementation does there may be what is looked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.constants import constant_of
from tflq.ir import Model, Operator
from tflq.ir.schema import enum
from tflq.verification.editing import with_constant, with_option, with_tensor

Array = NDArray[Any]
Sample: TypeAlias = "tuple[Array, ...]"
#: Which elements of the operator's first output the narrowed one makes.
Selection: TypeAlias = "tuple[slice, ...]"
Narrowed: TypeAlias = "tuple[Model, Sample, Selection]"


def narrowings(model: Model, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Ways to narrow a model of one operator to a box of one channel, strongest first. They have to be checked."""
    operator = model.subgraphs[0].operators[0]
    name = model.operator_codes[operator.opcode_index].name
    if name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        kernel = model.subgraphs[0].tensors[operator.inputs[1]].shape[1:3]
        window = _window(model, operator, sample, box, kernel)
        for start in (window, None) if window is not None else (None,):
            yield from _channel(model, operator, sample, box, name, start)
    elif name in ("FULLY_CONNECTED", "TRANSPOSE_CONV"):
        yield from _channel(model, operator, sample, box, name, None)
    elif name in _POOLS:
        yield from _pool(model, operator, sample, box)
    elif name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        yield from _resized(model, operator, sample, box)
    elif name in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"):
        yield from _part(model, operator, sample, (*box[:-1], slice(None)), (*box[:-1], slice(None)))
    elif name in _REDUCTIONS:
        yield from _reduction(model, operator, sample, box)
    else:
        yield from _elementwise(model, operator, sample, box)


_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")


def _window(
    model: Model, operator: Operator, sample: Sample, box: Selection, kernel: tuple[int, ...]
) -> Selection | None:  # fmt: skip
    """The rows and columns of the input that the box reads, None where some lie outside."""
    graph, options = model.subgraphs[0], operator.options
    if options is None or len(box) != 4:
        return None
    output = graph.tensors[operator.outputs[0]].shape
    ranges = []
    for axis, side in ((1, "h"), (2, "w")):
        dilation = int(options.get(f"dilation_{side}_factor", 1))
        stride, reach = int(options[f"stride_{side}"]), (kernel[axis - 1] - 1) * dilation + 1
        extent = sample[0].shape[axis]
        before = 0
        if int(options["padding"]) == enum("Padding")["SAME"]:
            before = max((output[axis] - 1) * stride + reach - extent, 0) // 2
        start, stop = box[axis].start * stride - before, (box[axis].stop - 1) * stride - before + reach
        if start < 0 or stop > extent:
            return None
        ranges.append(slice(start, stop))
    return tuple(ranges)


def _pool(model: Model, operator: Operator, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """The box's window, without padding; else one channel."""
    options = operator.options
    if options is None or len(box) != 4:
        return
    kernel = int(options["filter_height"]), int(options["filter_width"])
    window = _window(model, operator, sample, box, kernel)
    if window is not None:
        yield from _part(_without_padding(model), operator, sample, (box[0], *window, box[3]), box)
    whole = (box[0], slice(None), slice(None), box[3])
    yield from _part(model, operator, sample, whole, whole)


def _resized(model: Model, operator: Operator, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """One channel; of it, where the sizes are constant, the part around the box at which the ratio is the same."""
    if len(box) != 4 or len(sample) != 1 or operator.options is None:
        return
    whole = (box[0], slice(None), slice(None), box[3])
    sizes = model.subgraphs[0].tensors[operator.outputs[0]].shape
    ends = 1 if operator.options.get("align_corners") else 0
    parts = [_same_ratio(sample[0].shape[axis], sizes[axis], box[axis], ends) for axis in (1, 2)]
    read, made = (tuple(p[side] for p in parts) for side in (0, 1))
    edited = with_constant(model, operator.inputs[1], np.array([s.stop - s.start for s in made], np.int32))
    yield from _part(edited, operator, sample, (box[0], *read, box[3]), (box[0], *made, box[3]))
    yield from _part(model, operator, sample, whole, whole)


def _same_ratio(extent: int, size: int, box: slice, ends: int) -> tuple[slice, slice]:
    """Input and output range around the box and one step of their ratio more; `ends` is 1 where corners are aligned."""
    steps = math.gcd(extent - ends, size - ends)
    if steps <= 0:
        return slice(0, extent), slice(0, size)
    read, made = (extent - ends) // steps, (size - ends) // steps
    first, last = max(box.start // made - 1, 0), min((box.stop - 1) // made + 2, steps)
    return slice(first * read, last * read + ends), slice(first * made, last * made + ends)


def _reduction(model: Model, operator: Operator, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """The elements that are reduced to the box."""
    axes = constant_of(model, model.subgraphs[0].tensors[operator.inputs[1]])
    if axes is None or not sample:
        return
    rank = sample[0].ndim
    reduced = {int(axis) % rank for axis in axes.reshape(-1)}
    if len(box) == rank:
        read = tuple(slice(None) if i in reduced else box[i] for i in range(rank))
    elif len(box) == rank - len(reduced):
        kept = iter(box)
        read = tuple(slice(None) if i in reduced else next(kept) for i in range(rank))
    else:
        return
    yield from _part(model, operator, sample, read, box)


def _part(model: Model, operator: Operator, sample: Sample, read: Selection, made: Selection) -> Iterator[Narrowed]:
    """An operator of one input, given and giving less."""
    if len(sample) != 1:
        return
    narrow = np.ascontiguousarray(sample[0][read])
    shape = np.empty(model.subgraphs[0].tensors[operator.outputs[0]].shape, np.bool_)[made].shape
    edited = _with_shape(_with_shape(model, operator.inputs[0], narrow.shape), operator.outputs[0], shape)
    yield edited, (narrow,), made


def _channel(
    model: Model, operator: Operator, sample: Sample, box: Selection, name: str, window: Selection | None
) -> Iterator[Narrowed]:
    """One output channel, and the box where a window is given; of a dense layer one output of one row."""
    graph, channel = model.subgraphs[0], box[-1].start
    axis = 3 if name == "DEPTHWISE_CONV_2D" else 0
    value = constant_of(model, graph.tensors[operator.inputs[1]])
    x, depth = sample[0], graph.tensors[operator.outputs[0]].shape[-1]
    per_channel_input = name == "DEPTHWISE_CONV_2D"
    if value is None or len(sample) != 1 or (per_channel_input and depth != x.shape[-1]):
        return
    selection = list(box)
    if name == "FULLY_CONNECTED":
        narrow = x[box[0]] if x.ndim == 2 and len(box) == 2 else x
        if narrow is x:
            selection[:-1] = [slice(None)] * (len(box) - 1)
    elif window is not None:
        narrow = x[(selection[0], *window)]
    else:
        narrow = x[selection[0]]
        selection[1:3] = [slice(None)] * 2
    if per_channel_input:
        narrow = narrow[..., channel : channel + 1]
    keep = [slice(None)] * value.ndim
    keep[axis] = slice(channel, channel + 1)
    edited = _of_channel(model, operator.inputs[1], value[tuple(keep)], channel)
    place = 3 if name == "TRANSPOSE_CONV" else 2
    bias = operator.inputs[place] if len(operator.inputs) > place else -1
    stored = constant_of(model, graph.tensors[bias]) if bias >= 0 else None
    if stored is not None:
        edited = _of_channel(edited, bias, stored[channel : channel + 1], channel)
    if window is not None:
        edited = _without_padding(edited)
    shape = np.empty(graph.tensors[operator.outputs[0]].shape, np.bool_)[tuple(selection)].shape
    if name == "TRANSPOSE_CONV":
        edited = with_constant(edited, operator.inputs[0], np.array(shape, np.int32))
    data = operator.inputs[2 if name == "TRANSPOSE_CONV" else 0]
    edited = _with_shape(_with_shape(edited, data, narrow.shape), operator.outputs[0], shape)
    yield edited, (np.ascontiguousarray(narrow),), tuple(selection)


def _elementwise(model: Model, operator: Operator, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """The box of every operand; along axes where an operand has one element for all, that one."""
    graph = model.subgraphs[0]
    narrow = tuple(np.ascontiguousarray(value[_broadcast(value.shape, box)]) for value in sample)
    edited = _with_shape(model, operator.outputs[0], tuple(s.stop - s.start for s in box))
    for tensor, value in zip(graph.inputs, narrow, strict=True):
        edited = _with_shape(edited, tensor, value.shape)
    for tensor in operator.inputs:
        stored = constant_of(model, graph.tensors[tensor]) if tensor >= 0 and tensor not in graph.inputs else None
        if stored is not None and stored.size > 1:
            edited = with_constant(edited, tensor, stored[_broadcast(stored.shape, box)])
    yield edited, narrow, box


def _broadcast(shape: tuple[int, ...], box: Selection) -> Selection:
    aligned = box[len(box) - len(shape) :] if len(shape) <= len(box) else ()
    return tuple(slice(0, 1) if extent == 1 else part for extent, part in zip(shape, aligned, strict=False))


def _of_channel(model: Model, tensor: int, value: Array, channel: int) -> Model:
    """With another value of a constant; of several scales that of the channel."""
    q = model.subgraphs[0].tensors[tensor].quantization
    edited = with_constant(model, tensor, value)
    if q is not None and q.scale.size > 1:
        points = q.zero_point[channel : channel + 1] if q.zero_point.size == q.scale.size else q.zero_point[:1]
        q = replace(q, scale=q.scale[channel : channel + 1], zero_point=points, min=None, max=None)
        edited = with_tensor(edited, tensor, replace(edited.subgraphs[0].tensors[tensor], quantization=q))
    return edited


def _with_shape(model: Model, tensor: int, shape: tuple[int, ...]) -> Model:
    spec = replace(model.subgraphs[0].tensors[tensor], shape=tuple(map(int, shape)), shape_signature=None)
    return with_tensor(model, tensor, spec)


def _without_padding(model: Model) -> Model:
    return with_option(model, "padding", enum("Padding")["VALID"])
