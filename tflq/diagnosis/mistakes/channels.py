"""Mistakes in single channels or items: offsets, weights, biases; items of a batch that are not computed.

The channels, items and offsets are read from the dump. They are then tested like all other hypotheses: all bits must
agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tflq.comparison.inspection.parts import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken
from tflq.engine.api.part import Part
from tflq.engine.interpreter import Plan
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.engine.profiles import Profile
from tflq.errors import UnsupportedError
from tflq.model.ir import STORED_BITS, Model, TensorType, view
from tflq.model.surgery.edit import with_constant
from tflq.typing import Array

Values = Mapping[int, Array]

#: Limits on the number of differing channels for a mistake in single ones, and sizes of blocks of channels.
_FEW, _BLOCKS = 4, (4, 8, 16, 32)
#: By operator, the axis of the weights that counts the results' channels.
CHANNEL_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 0, "TRANSPOSE_CONV": 0}


def mistaken_channels(alone: Part, profile: Profile) -> Iterator[Mistaken]:
    """Yield offsets of the results, and batch items with other contents, as far as the dump suggests them."""
    if len(alone.got) != 1:
        return
    ((tensor, dumped),) = alone.got.items()
    computed = alone.run(alone.plan(profile)).get(tensor)
    if (
        computed is None
        or computed.shape != dumped.shape
        or computed.dtype != dumped.dtype
        or computed.dtype.kind not in "iu"
        or not computed.ndim
    ):
        return
    yield from _offsets(alone, profile, computed, dumped)
    if computed.shape[0] > 1:
        yield from _first_items(profile, dumped)


def _offsets(alone: Part, profile: Profile, computed: Array, dumped: Array) -> Iterator[Mistaken]:
    error = dumped.astype(np.int64) - computed.astype(np.int64)
    prepared = alone.plan(profile).steps[0].prepared
    limits = [part.value for part in parts_of(None if prepared is None else prepared.data, Clamp)]
    whole = type_range(computed.dtype)
    clamps: dict[str, Clamp | None] = {"": None, ", added to the codes": whole}
    if limits and limits[0] != whole:
        clamps[", added to the codes inside the activation's limits"] = limits[0]
    channels = differing_channels(computed, dumped)
    if computed.ndim < 2 or not 0 < len(channels) < computed.shape[-1] or len(channels) > _FEW:
        return  # one offset of everything may have another cause, such as a zero point
    place = f"channel{'s' if len(channels) > 1 else ''} {', '.join(map(str, channels))}"
    index = (..., channels)
    if len(np.unique(dumped[index])) == 1 < len(np.unique(computed[index])):
        return  # a constant is no offset: the channels were not computed
    steps = error[index][error[index] != 0]
    farthest = steps[np.argmax(np.abs(steps))]  # limits make offsets look smaller
    for offset in dict.fromkeys((int(np.median(steps)), int(farthest))):
        for ending, clamp in clamps.items():
            yield f"offset of {offset:+d} in {place}{ending}", _offset(profile, index, offset, clamp)


def _offset(profile: Profile, index: tuple[Any, ...], offset: int, clamp: Clamp | None) -> Device:
    """Return a device with an offset after the operator's limits, inside `clamp`.

    If `clamp` is None, the offset comes before the limits; the operator must have one output pipeline.
    """

    def device(alone: Part) -> Values:
        plan = alone.plan(profile)
        values = alone.run(plan)
        moved = alone.run(_with_zero_point_moved(plan, offset)) if clamp is None else values
        for tensor in alone.got:
            codes, dtype = values[tensor].copy(), values[tensor].dtype
            if clamp is None:
                codes[index] = moved[tensor][index]
            else:
                codes[index] = np.clip(codes[index].astype(np.int64) + offset, *clamp).astype(dtype)
            values[tensor] = codes
        return values

    return device


def _with_zero_point_moved(plan: Plan, offset: int) -> Plan:
    step = plan.steps[0]
    if step.prepared is None:
        raise UnsupportedError(step.op, reason="bound when it runs")
    pipelines = list(parts_of(step.prepared.data, OutputPipeline))
    if len(pipelines) != 1:
        raise UnsupportedError(step.op, reason="holds no single output pipeline")
    (pipeline,) = pipelines
    right = pipeline.value
    data = pipeline.rebuild(replace(right, zero_point=ZeroPoint(right.zero_point + offset)))
    return replace(plan, steps=(replace(step, prepared=replace(step.prepared, data=data)),))


def _first_items(profile: Profile, dumped: Array) -> Iterator[Mistaken]:
    """Yield devices that compute only the first item of a batch; the others hold old memory contents."""
    rest = dumped[1:]
    fills: dict[str, Callable[[Array], Any]] = {"0": lambda first: 0, "copies of it": lambda first: first}
    if rest.size and (rest == rest.flat[0]).all() and rest.flat[0]:
        constant = rest.flat[0].item()
        fills[str(constant)] = lambda first: constant
    for name, fill in fills.items():
        yield f"only the first item of the batch computed, the others hold {name}", _first_item(profile, fill)


def _first_item(profile: Profile, fill: Callable[[Array], Any]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        for tensor in alone.got:
            items = values[tensor].copy()
            items[1:] = fill(items[:1])
            values[tensor] = items
        return values

    return device


def differing_channels(computed: Array, dumped: Array) -> Array:
    """Return the channels, the last axis, in which any element differs."""
    apart = (computed != dumped).reshape(-1, computed.shape[-1]).any(axis=0)
    return np.flatnonzero(apart)


def models_of_channels(alone: Part, profile: Profile) -> Iterator[tuple[str, Model]]:
    """Yield the operator's model with weights or biases of the differing channels wrong."""
    operator = alone.op
    name = operator.builtin
    if name not in CHANNEL_AXIS or len(alone.got) != 1:
        return
    ((tensor, dumped),) = alone.got.items()
    computed = alone.run(alone.plan(profile)).get(tensor)
    if computed is None or computed.shape != dumped.shape or not computed.ndim:
        return
    channels = differing_channels(computed, dumped)
    if not 0 < len(channels) < computed.shape[-1]:
        return
    yield from _biases(alone.model, operator.inputs[2:3], channels, computed.shape[-1])
    if len(channels) <= _FEW:
        yield from _weights(alone.model, operator.inputs[1], CHANNEL_AXIS[name], channels)


def _biases(model: Model, positions: Sequence[int], channels: Array, count: int) -> Iterator[tuple[str, Model]]:
    """Yield a bias that is missing in the differing channels, or in the blocks or the half of all that hold them."""
    for position in (t for t in positions if t >= 0):
        bias = view(model).constant(position)
        if bias is None or bias.size != count:
            continue
        first, last = int(channels[0]), int(channels[-1])
        spans = {(first, last + 1)}
        for block in (*_BLOCKS, *(count // groups for groups in range(2, 9) if count % groups == 0)):
            spans.add((first // block * block, min(count, -(-(last + 1) // block) * block)))
        for start, stop in sorted(spans, key=lambda span: span[1] - span[0]):
            if stop - start < count:
                changed = bias.copy()
                changed[start:stop] = 0
                where = f"channel {start}" if stop - start == 1 else f"channels {start} to {stop - 1}"
                yield f"bias missing in {where}", with_constant(model, position, changed)


def _weights(model: Model, tensor: int, axis: int, channels: Array) -> Iterator[tuple[str, Model]]:
    """Yield weights of the differing channels: shifted by one in memory or along an axis, or another channel's."""
    graph = view(model)
    spec = graph.operand(tensor)
    if spec is None or not isinstance(spec.type, TensorType) or STORED_BITS.get(spec.type, 0) < 8:
        return
    weights = graph.constant(tensor)
    if weights is None or weights.ndim <= axis:
        return
    named = f"channel{'s' if len(channels) > 1 else ''} {', '.join(map(str, channels))}"
    rows = np.moveaxis(weights, axis, 0)
    zero = 0 if spec.quantization is None or not spec.quantization.zero_point.size else spec.quantization.zero_point[0]
    ways: dict[str, Callable[[Array], Array]] = {"missing": lambda row: np.full_like(row, zero)}
    for step in (1, -1):
        way = "forwards" if step == 1 else "backwards"
        ways[f"shifted {way} by one"] = partial(_roll, step, None)
        ways[f"shifted {way} by one, filled with the zero point"] = partial(_push, step, int(zero))
        for at in range(rows.ndim - 1) if rows.ndim > 2 else ():
            ways[f"shifted {way} by one along axis {at} of the filter"] = partial(_roll, step, at)
    for name, way_of in ways.items():
        changed = rows.copy()
        for channel in channels:
            changed[channel] = way_of(rows[channel])
        yield f"weights of {named} {name}", with_constant(model, tensor, np.moveaxis(changed, 0, axis))
    for step, name in ((1, "the next"), (-1, "the previous")):
        changed = rows.copy()
        changed[channels] = np.roll(rows, -step, 0)[channels]
        yield f"weights of {named} {name} channel's", with_constant(model, tensor, np.moveaxis(changed, 0, axis))


def _roll(step: int, axis: int | None, row: Array) -> Array:
    return np.roll(row, step, axis)


def _push(step: int, fill: int, row: Array) -> Array:
    moved = np.roll(row.reshape(-1), step)
    moved[0 if step > 0 else -1] = fill
    return moved.reshape(row.shape)
