"""One operator narrowed to a box of its output: smaller shapes, the same arithmetic inside the box.

Windows that reach over an edge are left as they are, since what an implementation does there may be what is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.interpreter.constants import constant_of
from tflq.ir import Buffer, Model, Operator, TensorSpec
from tflq.ir.schema import enum

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
        window = _window(model, operator, sample, box)
        for start in (window, None) if window is not None else (None,):
            yield from _channel(model, operator, sample, box, name, start)
    elif name == "FULLY_CONNECTED":
        yield from _channel(model, operator, sample, box, name, None)
    else:
        yield from _elementwise(model, operator, sample, box)


def _window(model: Model, operator: Operator, sample: Sample, box: Selection) -> Selection | None:
    """The rows and columns of the input that the box reads, None where some lie outside."""
    graph, options = model.subgraphs[0], operator.options
    if options is None or len(box) != 4:
        return None
    kernel, output = graph.tensors[operator.inputs[1]].shape, graph.tensors[operator.outputs[0]].shape
    ranges = []
    for axis, side in ((1, "h"), (2, "w")):
        dilation = int(options[f"dilation_{side}_factor"])
        stride, reach = int(options[f"stride_{side}"]), (kernel[axis] - 1) * dilation + 1
        extent = sample[0].shape[axis]
        before = 0
        if int(options["padding"]) == enum("Padding")["SAME"]:
            before = max((output[axis] - 1) * stride + reach - extent, 0) // 2
        start, stop = box[axis].start * stride - before, (box[axis].stop - 1) * stride - before + reach
        if start < 0 or stop > extent:
            return None
        ranges.append(slice(start, stop))
    return tuple(ranges)


def _channel(
    model: Model, operator: Operator, sample: Sample, box: Selection, name: str, window: Selection | None
) -> Iterator[Narrowed]:
    """One output channel, and the box where a window is given; of a dense layer one output of one row."""
    graph, channel = model.subgraphs[0], box[-1].start
    axis = 3 if name == "DEPTHWISE_CONV_2D" else 0
    weights = graph.tensors[operator.inputs[1]]
    value = constant_of(model, weights)
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
    edited = _with_constant(model, operator.inputs[1], value[tuple(keep)], channel)
    bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
    stored = constant_of(model, graph.tensors[bias]) if bias >= 0 else None
    if stored is not None:
        edited = _with_constant(edited, bias, stored[channel : channel + 1], channel)
    if window is not None and operator.options is not None:
        valid = {**operator.options.fields, "padding": enum("Padding")["VALID"]}
        edited = _with_operator(edited, replace(operator, options=replace(operator.options, fields=valid)))
    shape = np.empty(graph.tensors[operator.outputs[0]].shape, np.bool_)[tuple(selection)].shape
    edited = _with_shape(_with_shape(edited, operator.inputs[0], narrow.shape), operator.outputs[0], shape)
    yield edited, (np.ascontiguousarray(narrow),), tuple(selection)


def _elementwise(model: Model, operator: Operator, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    graph = model.subgraphs[0]
    shape = graph.tensors[operator.outputs[0]].shape
    selection = box
    edited, narrow = model, []
    for tensor, value in zip(graph.inputs, sample, strict=True):
        if value.shape != shape:
            return
        narrow.append(np.ascontiguousarray(value[selection]))
        edited = _with_shape(edited, tensor, narrow[-1].shape)
    edited = _with_shape(edited, operator.outputs[0], tuple(s.stop - s.start for s in box))
    for tensor in operator.inputs:
        stored = constant_of(model, graph.tensors[tensor]) if tensor >= 0 and tensor not in graph.inputs else None
        if stored is not None and stored.shape == shape:
            edited = _with_constant(edited, tensor, stored[selection], 0)
    yield edited, tuple(narrow), selection


def _with_constant(model: Model, tensor: int, value: Array, channel: int) -> Model:
    """With another value, in a buffer of its own; of several scales that of the channel."""
    spec = model.subgraphs[0].tensors[tensor]
    q = spec.quantization
    if q is not None and q.scale.size > 1:
        points = q.zero_point[channel : channel + 1] if q.zero_point.size == q.scale.size else q.zero_point[:1]
        q = replace(q, scale=q.scale[channel : channel + 1], zero_point=points, min=None, max=None)
    data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    buffers = (*model.buffers, Buffer(data))
    changed = replace(spec, shape=value.shape, quantization=q, buffer=len(model.buffers), shape_signature=None)
    return _with_spec(replace(model, buffers=buffers), tensor, changed)


def _with_shape(model: Model, tensor: int, shape: tuple[int, ...]) -> Model:
    spec = replace(model.subgraphs[0].tensors[tensor], shape=tuple(map(int, shape)), shape_signature=None)
    return _with_spec(model, tensor, spec)


def _with_spec(model: Model, tensor: int, spec: TensorSpec) -> Model:
    graph = model.subgraphs[0]
    tensors = (*graph.tensors[:tensor], spec, *graph.tensors[tensor + 1 :])
    return replace(model, subgraphs=(replace(graph, tensors=tensors), *model.subgraphs[1:]))


def _with_operator(model: Model, operator: Operator) -> Model:
    graph = replace(model.subgraphs[0], operators=(operator,))
    return replace(model, subgraphs=(graph, *model.subgraphs[1:]))
