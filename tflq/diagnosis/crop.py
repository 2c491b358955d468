"""One operator narrowed to a box of its output: smaller shapes, the same arithmetic inside the box.

Windows that reach over an edge keep it, since the cause of a difference may be there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tflq.diagnosis.channel_crop import (
    Narrowed,
    Sample,
    Selection,
    channel_narrowings,
    edge_of,
    window_of,
    with_shape,
    without_padding,
)
from tflq.engine.kernels.facts.rules import WITH_CHANNELS
from tflq.model.ir import Model, OperatorView, view
from tflq.model.surgery.edit import with_constant

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
