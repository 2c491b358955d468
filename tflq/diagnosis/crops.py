"""One operator narrowed: to a box, a channel, or a thinner image.

Operators with weights narrowed to one output channel, and to the window of a box if it is inside the image.

One operator narrowed to a box of its output: smaller shapes, the same arithmetic inside the box.

Windows that reach over an edge keep it, since the cause of a difference may be there.

One operator on a thinner image: most rows and columns removed, the results of the others unchanged.

Pixels at the image's borders stay at the borders, so padding has the same effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tflq.comparison.inspection.difference import unequal
from tflq.comparison.inspection.prepared import parts_of
from tflq.engine.api.many import Part
from tflq.engine.kernels.facts.rules import WITH_CHANNELS, Places
from tflq.engine.kernels.geometry.windows import Window
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import Model, OperatorView, view
from tflq.model.ir.model import enum
from tflq.model.surgery.tap import with_constant, with_option, with_tensor
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


_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
_RESIZES = ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
_ROWWISE = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")
_REDUCTIONS = ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")


def narrowings(model: Model, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Yield models narrowed to a box of one channel, strongest first. The caller must check them."""
    operator = view(model).op(0)
    name = operator.builtin
    if name in WITH_CHANNELS:
        yield from channel_narrowings(model, sample, box, name)
    elif name in _POOLS:
        yield from _pool(model, operator, sample, box)
    elif name in _RESIZES:
        yield from _resize(model, operator, sample, box)
    elif name in _ROWWISE:
        yield from _part(model, operator, sample, (*box[:-1], slice(None)), (*box[:-1], slice(None)))
    elif name in _REDUCTIONS:
        yield from _reduction(model, operator, sample, box)
    else:
        yield from _elementwise(model, operator, sample, box)


def _pool(model: Model, operator: OperatorView, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Yield the box's window, without padding; else one channel."""
    options = operator.options
    if options is None or len(box) != 4:
        return
    kernel = int(options["filter_height"]), int(options["filter_width"])
    window = window_of(operator, sample[0], box, kernel)
    if window is not None:
        yield from _part(without_padding(model), operator, sample, (box[0], *window, box[3]), box)
    for read, written in edge_of(operator, sample[0], box, kernel):
        yield from _part(model, operator, sample, (box[0], *read, box[3]), (box[0], *written, box[3]))
    whole = (box[0], slice(None), slice(None), box[3])
    yield from _part(model, operator, sample, whole, whole)


def _resize(model: Model, operator: OperatorView, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Yield one channel; if the sizes are constant, then its part around the box with the same ratio."""
    if len(box) != 4 or len(sample) != 1 or operator.options is None:
        return
    whole = (box[0], slice(None), slice(None), box[3])
    sizes = operator.output().shape
    ends = 1 if operator.options.get("align_corners") else 0
    parts = [_same_ratio(sample[0].shape[axis], sizes[axis], box[axis], ends) for axis in (1, 2)]
    read, written = (tuple(p[side] for p in parts) for side in (0, 1))
    edited = with_constant(model, operator.inputs[1], np.array([s.stop - s.start for s in written], np.int32))
    yield from _part(edited, operator, sample, (box[0], *read, box[3]), (box[0], *written, box[3]))
    yield from _part(model, operator, sample, whole, whole)


def _same_ratio(extent: int, size: int, box: slice, ends: int) -> tuple[slice, slice]:
    """Return input and output range around the box, plus one step of their ratio; `ends` is 1 for aligned corners."""
    steps = math.gcd(extent - ends, size - ends)
    if steps <= 0:
        return slice(0, extent), slice(0, size)
    read, written = (extent - ends) // steps, (size - ends) // steps
    first, last = max(box.start // written - 1, 0), min((box.stop - 1) // written + 2, steps)
    return slice(first * read, last * read + ends), slice(first * written, last * written + ends)


def _reduction(model: Model, operator: OperatorView, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Yield the elements that are reduced to the box."""
    axes = view(model).constant(operator.inputs[1])
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


def _part(
    model: Model, operator: OperatorView, sample: Sample, read: Selection, written: Selection
) -> Iterator[Narrowed]:
    """Yield the one-input operator on the elements `read` of its input, which writes the elements `written`."""
    if len(sample) != 1:
        return
    narrow = np.asarray(sample[0][read], order="C")
    shape = np.empty(operator.output().shape, np.bool_)[written].shape
    edited = with_shape(with_shape(model, operator.inputs[0], narrow.shape), operator.outputs[0], shape)
    yield edited, (narrow,), written


def _elementwise(model: Model, operator: OperatorView, sample: Sample, box: Selection) -> Iterator[Narrowed]:
    """Yield the box of every operand; along broadcast axes of an operand, its one element."""
    graph = view(model)
    narrow = tuple(np.asarray(value[_broadcast(value.shape, box)], order="C") for value in sample)
    edited = with_shape(model, operator.outputs[0], tuple(s.stop - s.start for s in box))
    for tensor, value in zip(graph.inputs, narrow, strict=True):
        edited = with_shape(edited, tensor, value.shape)
    for tensor in operator.inputs:
        stored = graph.constant(tensor) if tensor >= 0 and tensor not in graph.inputs else None
        if stored is not None and stored.size > 1:
            edited = with_constant(edited, tensor, stored[_broadcast(stored.shape, box)])
    yield edited, narrow, box


def _broadcast(shape: tuple[int, ...], box: Selection) -> Selection:
    aligned = box[len(box) - len(shape) :] if len(shape) <= len(box) else ()
    return tuple(slice(0, 1) if extent == 1 else part for extent, part in zip(shape, aligned, strict=False))


Spans = list[tuple[int, int]]

#: Results with fewer elements are not thinned.
_WORTH = 1 << 14
#: Number of rows, and columns, that are kept at each border and around one place, in outputs.
_KEPT = 4


@dataclass(frozen=True, slots=True, eq=False)
class ThinAxis:
    """One axis of an image: the kept rows, and the output rows that read only these.

    `outputs` are those output rows, `now` their numbers on the thinner image.
    """

    rows: NDArray[np.int64]
    outputs: NDArray[np.int64]
    now: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Thinner:
    """The operator alone on the thinner image. `got` of `alone` is whole rows and columns of the dump's."""

    alone: Part
    down: ThinAxis
    across: ThinAxis

    def of(self, values: Mapping[int, Array]) -> dict[int, Array]:
        """Return the results that equal the whole image's."""
        return {t: values[t][:, self.down.now][:, :, self.across.now] for t in self.alone.got if t in values}


def thinned(alone: Part, profile: Profile, base: Mapping[int, Array]) -> Thinner | None:
    """Return the operator on a thinner image, checked against the profile's whole results, `base`; else None."""
    window = _window(alone, profile)
    if window is None:
        return None
    ((tensor, dumped),) = alone.got.items()
    apart = np.argwhere(unequal(base[tensor], dumped))
    place = apart[len(apart) // 2] if len(apart) else np.zeros(4, np.int64)
    w = window
    reach = ((w.kernel_h - 1) * w.dilation_h + 1, (w.kernel_w - 1) * w.dilation_w + 1)
    down = _axis(w.height, w.out_h, w.stride_h, w.pad_top, reach[0], int(place[1]))
    across = _axis(w.width, w.out_w, w.stride_w, w.pad_left, reach[1], int(place[2]))
    images = {p: x[:, down.rows][:, :, across.rows] for p, x in alone.inputs.items()}
    got = {tensor: dumped[:, down.outputs][:, :, across.outputs]}
    thinner = Thinner(replace(alone, inputs=images, got=got), down, across)
    try:
        computed = thinner.of(thinner.alone.run(thinner.alone.plan(profile)))
    except (TflqError, IndexError):
        return None
    right = base[tensor][:, down.outputs][:, :, across.outputs]
    return thinner if got[tensor].size and np.array_equal(computed[tensor], right) else None


def _window(alone: Part, profile: Profile) -> Window | None:
    """Return the operator's window over its images; an element-wise operator has a window of one tap."""
    images = list(alone.inputs.values())
    if len(alone.got) != 1 or not images or any(x.ndim != 4 for x in images):
        return None
    (dumped,) = alone.got.values()
    if dumped.ndim != 4 or dumped.size < _WORTH or any(x.shape[:3] != images[0].shape[:3] for x in images):
        return None
    prepared = alone.plan(profile).steps[0].prepared
    windows = parts_of(None if prepared is None else prepared.data, Window)
    height, width = images[0].shape[1:3]
    window = next((part.value for part in windows), Window.of_one_tap(height, width))
    over_image = (window.height, window.width) == (height, width)
    return window if over_image and (window.out_h, window.out_w) == dumped.shape[1:3] else None


def _axis(size: int, out: int, stride: int, before: int, reach: int, place: int) -> ThinAxis:
    """Keep the rows that the first and last outputs see, and those around `place`; gaps are multiples of the stride.

    As many rows as a window has stay around each, so that a window can be displaced by its padding.
    """
    margin = reach if reach > 1 else 0
    kept = np.zeros(out, bool)
    for at in (0, place, out - 1):
        kept[max(0, at - _KEPT) : at + _KEPT + 1] = True
    rows = np.zeros(size, bool)
    for y in np.flatnonzero(kept).tolist():
        rows[max(0, y * stride - before - margin) : max(0, y * stride - before + reach + margin)] = True
    spans = _align(_spans(rows), size, stride)
    starts = np.array([a for a, _ in spans])
    gone = np.cumsum(starts - np.array([0, *(b for _, b in spans[:-1])]))  # rows removed before each span
    kept_outputs, now = [], []
    for y in range(out):
        first, last = y * stride - before - margin, y * stride - before + reach + margin
        for (a, b), lost in zip(spans, gone, strict=True):
            if (a <= first or a == 0) and (last <= b or b == size):
                kept_outputs.append(y)
                now.append(y - int(lost) // stride)
                break
    return ThinAxis(
        np.concatenate([np.arange(a, b) for a, b in spans]), np.array(kept_outputs, int), np.array(now, int)
    )


def _spans(rows: NDArray[np.bool_]) -> Spans:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _align(spans: Spans, size: int, stride: int) -> Spans:
    """Extend the spans to the first and last row; shrink gaps to multiples of the stride."""
    spans = [(0, spans[0][1]), *spans[1:]]
    spans[-1] = (spans[-1][0], size)
    joined: Spans = [spans[0]]
    for a, b in spans[1:]:
        gap = (a - joined[-1][1]) // stride * stride
        if gap <= 0:
            joined[-1] = (joined[-1][0], b)
        else:
            joined.append((joined[-1][1] + gap, b))
    return joined
