"""Mistakes in reading the operator's model, in channels, and in raw codes.

Mistakes in reading the operator's own model: zero points, biases, filters, options.

Each is the single operator's model with one of its tensors or options changed.

Mistakes in single channels or items: offsets, weights, biases; items of a batch that are not computed.

The channels, items and offsets are read from the dump. They are then tested like all other hypotheses: all bits must
agree.

Operators on codes as if they were numbers: scales and zero points ignored. SOFTMAX by a table of exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from tflq.comparison.inspection.difference import bits_of, digest_of
from tflq.comparison.inspection.prepared import parts_of
from tflq.diagnosis.mistakes.device import Device, Mistaken, Under, read_as, stored_as
from tflq.engine.api.many import Part
from tflq.engine.interpreter import Plan
from tflq.engine.kernels.families.activation import LIMITS
from tflq.engine.numerics.codes import Clamp, ZeroPoint
from tflq.engine.numerics.stages import OutputPipeline, type_range
from tflq.engine.profiles import Profile
from tflq.errors import UnsupportedError
from tflq.model.ir import STORED_BITS, Model, TensorSpec, TensorType, view
from tflq.model.ir.constants import zero_point_of
from tflq.model.surgery.tap import with_constant, with_option, with_tensor
from tflq.typing import Array

TensorsMistaken = tuple[str, Model]

#: Names of the schema's fused activation functions.
_ACTIVATIONS = dict(zip(LIMITS, ("no activation", "RELU", "RELU_N1_TO_1", "RELU6"), strict=True))

#: Letters of a filter's axes, by operator; the last ones are those of the shape in the file.
_AXES = {
    "CONV_2D": "OHWI",
    "TRANSPOSE_CONV": "OHWI",
    "DEPTHWISE_CONV_2D": "1HWO",
    "FULLY_CONNECTED": "OI",
    "CONV_3D": "DHWIO",
}

#: Places of biases among the inputs, by operator.
BIASES = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3, "CONV_3D": 2}

#: Options that are on or off.
_SWITCHES = ("align_corners", "half_pixel_centers", "exclusive", "reverse", "adj_x", "adj_y", "approximate")


def mistaken_models(alone: Model) -> Iterator[TensorsMistaken]:
    """Yield a single operator's model with one of its tensors or options misread."""
    yield from _zero_points(alone)
    yield from _biases(alone)
    yield from _float_biases(alone)
    yield from _scales(alone)
    yield from _filters(alone)
    yield from _narrow_codes(alone)
    yield from _activations(alone)
    yield from _switches(alone)


def _zero_points(alone: Model) -> Iterator[TensorsMistaken]:
    graph = view(alone)
    operator = graph.op(0)
    places = [(f"input {i}", t) for i, t in enumerate(operator.inputs)]
    places += [(f"output {i}", t) for i, t in enumerate(operator.outputs)]
    for place, tensor in places:
        spec = graph.operand(tensor)
        quantization = None if spec is None else spec.quantization
        if spec is None or quantization is None or not quantization.zero_point.size:
            continue
        for name, changed in wrong_zero_points(spec, quantization.zero_point).items():
            mistaken = replace(spec, quantization=replace(quantization, zero_point=changed))
            yield f"zero point of {place} {name}", with_tensor(alone, tensor, mistaken)


def wrong_zero_points(spec: TensorSpec, points: Array) -> dict[str, Array]:
    """Return wrong readings of a tensor's zero points, by mistake; some are not codes of its type."""
    changes = {"of the other signedness": points + _to_other_sign(spec)} if _to_other_sign(spec) else {}
    if np.any(points):
        changes |= {"ignored": np.zeros_like(points), "with the wrong sign": -points}
    return changes


def _to_other_sign(spec: TensorSpec) -> int:
    """Return the offset from an 8-bit code to its value in the other signedness; 0 for other types."""
    return {TensorType.INT8: 128, TensorType.UINT8: -128}.get(spec.type, 0) if isinstance(spec.type, TensorType) else 0


def _biases(alone: Model) -> Iterator[TensorsMistaken]:
    graph = view(alone)
    for tensor in graph.op(0).inputs:
        spec = graph.operand(tensor)
        if spec is None or spec.type not in (TensorType.INT32, TensorType.INT64) or len(spec.shape) != 1:
            continue
        if spec.quantization is None or not spec.quantization.scale.size:
            continue  # a shape or axes, not a bias
        value = graph.constant(tensor)
        if value is None or not value.size:
            continue
        tried = {bits_of(value)}
        wrong = _wrong_biases(value.astype(np.int64), _relative_scales(alone, spec, value.size))
        for name, changed in (*wrong, *_wrong_bytes(value)):
            clamped = np.clip(changed, *type_range(value.dtype)).astype(value.dtype)
            if (bits := bits_of(clamped)) not in tried:
                tried.add(bits)
                yield name, with_constant(alone, tensor, clamped)


def _float_biases(alone: Model) -> Iterator[TensorsMistaken]:
    graph = view(alone)
    place = BIASES.get(graph.op(0).builtin, len(graph.op(0).inputs))
    tensor = graph.op(0).inputs[place] if place < len(graph.op(0).inputs) else -1
    value = graph.constant(tensor) if tensor >= 0 else None
    if value is None or value.dtype != np.float32 or not value.any():
        return
    changes = {
        "bias missing": np.zeros_like(value),
        "bias with the wrong sign": -value,
        "bias added twice: scaled by 2": value * np.float32(2),
        "the next channel's bias": np.roll(value, -1),
        "the previous channel's bias": np.roll(value, 1),
        "the first channel's bias for all": np.full_like(value, value.reshape(-1)[0]),
    }
    for name, changed in (*changes.items(), *_wrong_bytes(value)):
        yield name, with_constant(alone, tensor, changed)


def _wrong_biases(bias: Array, scales: dict[str, Array]) -> Iterator[tuple[str, Array]]:
    yield "bias missing", np.zeros_like(bias)
    yield "bias with the wrong sign", -bias
    yield "bias added twice: scaled by 2", bias * 2
    yield "bias scaled by 1/2, towards minus infinity", bias >> 1
    yield "bias scaled by 1/2, towards zero", np.trunc(bias / 2)
    yield "bias scaled by 1/2, to nearest", np.rint(bias / 2)
    for bits in (8, 16):
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        yield f"bias of {bits} bits that saturates", np.clip(bias, low, high)
        yield f"bias of {bits} bits that wraps", (bias - low) % (1 << bits) + low
    yield "bias without its sign", np.abs(bias)
    for bits in (32, 40, 48):
        yield f"sign of negative biases lost: read as {bits} bits without a sign", bias % (1 << bits)
    yield "the next channel's bias", np.roll(bias, -1)
    yield "the previous channel's bias", np.roll(bias, 1)
    yield "the first channel's bias for all", np.full_like(bias, bias[0])
    for name, factor in scales.items():
        with np.errstate(all="ignore"):
            scaled = np.nan_to_num(bias * factor)
        yield f"bias scaled wrongly: {name}", np.rint(scaled)
        yield f"bias scaled wrongly, towards zero: {name}", np.trunc(scaled)


def _wrong_bytes(value: Array) -> Iterator[tuple[str, Array]]:
    """Yield a bias whose bytes are in another order, or read some bytes early or late."""
    yield "bias read with its bytes in the other order (big-endian)", value.byteswap()
    if value.dtype.itemsize > 1:
        halves = np.ascontiguousarray(value).view(f"i{value.dtype.itemsize // 2}").reshape(-1, 2)[:, ::-1]
        yield "bias read with its halves exchanged", np.ascontiguousarray(halves).view(value.dtype).reshape(-1)
    data = np.ascontiguousarray(value).view(np.uint8).reshape(-1)
    for by in range(1, value.dtype.itemsize):
        for way, step in (("late", -by), ("early", by)):
            for fill, text in ((None, ""), (0, ", 0 beyond its end")):
                moved = np.roll(data, step)
                if fill is not None:
                    moved[slice(step, None) if step < 0 else slice(step)] = fill
                yield f"bias misaligned: read {by} byte{'s' if by > 1 else ''} {way}{text}", moved.view(value.dtype)


def _relative_scales(alone: Model, bias: TensorSpec, channels: int) -> dict[str, Array]:
    """Return the factors of biases that are read with another scale."""
    assert bias.quantization is not None
    graph = view(alone)
    own = np.broadcast_to(bias.quantization.scale.astype(np.float64), channels)
    factors = {
        "the first channel's scale for all": own[0] / own,
        "the largest scale for all": own.max() / own,
        "the mean scale for all": own.mean() / own,
        "the next channel's scale": np.roll(own, -1) / own,
        "the previous channel's scale": np.roll(own, 1) / own,
        "to the first channel's scale": own / own[0],
        "to the largest scale": own / own.max(),
    }
    others = [(f"input {i}", t) for i, t in enumerate(graph.op(0).inputs)]
    others += [(f"output {i}", t) for i, t in enumerate(graph.op(0).outputs)]
    for place, tensor in others:
        q = graph.tensors[tensor].quantization if tensor >= 0 else None
        if q is not None and q.scale.size in (1, channels) and graph.tensors[tensor] is not bias:
            scale = q.scale.astype(np.float64)
            factors[f"the scale of {place}"] = np.broadcast_to(scale / own, channels)
            factors[f"in LSB of {place}"] = np.broadcast_to(own / scale, channels)
            factors[f"multiplied by the scale of {place}"] = np.broadcast_to(scale, channels)
            factors[f"divided by the scale of {place}"] = np.broadcast_to(1 / scale, channels)
    return factors


def _scales(alone: Model) -> Iterator[TensorsMistaken]:
    """Yield scales of channels that belong to other channels."""
    graph = view(alone)
    for tensor in dict.fromkeys(graph.op(0).inputs):
        spec = graph.operand(tensor)
        q = None if spec is None else spec.quantization
        if spec is None or q is None or q.scale.size < 2 or spec.type in (TensorType.INT32, TensorType.INT64):
            continue
        for name, scale in _wrong_scales(q.scale).items():
            changed = replace(spec, quantization=replace(q, scale=scale.astype(np.float32)))
            yield f"scales of channels: {name}", with_tensor(alone, tensor, changed)


def _wrong_scales(scale: Array) -> dict[str, Array]:
    whole = {
        "the first for all": scale[0],
        "the largest for all": scale.max(),
        "the mean for all": scale.astype(np.float64).mean(),
        "the last for all": scale[-1],
        "the smallest for all": scale.min(),
    }
    shifted = {"each the next one's": np.roll(scale, -1), "each the previous one's": np.roll(scale, 1)}
    return {name: np.full_like(scale, value) for name, value in whole.items()} | shifted


def _filters(alone: Model) -> Iterator[TensorsMistaken]:
    """Yield the filter's constant with other axis orders: read so, stored so, or mirrored."""
    graph = view(alone)
    operator = graph.op(0)
    axes = _AXES.get(operator.builtin)
    tensor = operator.inputs[1] if axes and len(operator.inputs) > 1 else -1
    spec = graph.operand(tensor)
    if axes is None or spec is None or not isinstance(spec.type, TensorType) or STORED_BITS.get(spec.type, 0) < 8:
        return
    value = graph.constant(tensor)
    if value is None or value.ndim != len(axes):
        return
    for name, changed in wrong_orders(value, axes):
        yield f"filter {name}", with_constant(alone, tensor, changed)
    if axes == "1HWO":
        yield from _depthwise_multiples(alone, tensor, value)


def _narrow_codes(alone: Model) -> Iterator[TensorsMistaken]:
    """Yield constants of 4-bit codes, two in a byte, that are unpacked wrongly."""
    graph = view(alone)
    for place, tensor in enumerate(graph.op(0).inputs):
        spec, value = graph.operand(tensor), graph.constant(tensor)
        if spec is None or value is None or spec.type != TensorType.INT4:
            continue
        codes = value.astype(np.int8).reshape(-1)
        even = np.resize(codes, codes.size + codes.size % 2)
        swapped = even.reshape(-1, 2)[:, ::-1].reshape(-1)[: codes.size]
        unsigned = codes & np.int8(15)
        readings = {
            "the nibbles of each byte exchanged": swapped,
            "4-bit codes without a sign": unsigned,
            "4-bit codes without a sign, less 8": unsigned - np.int8(8),
            "4-bit codes in the upper half of a byte, not shifted down: 16 times as large": codes << np.int8(4),
            "the same, with the nibbles exchanged": swapped << np.int8(4),
            "the lower nibble for both": np.repeat(even[::2], 2)[: codes.size],
            "the upper nibble for both": np.repeat(even[1::2], 2)[: codes.size],
        }
        wide = with_tensor(alone, tensor, replace(spec, type=TensorType.INT8))
        for name, read in readings.items():
            yield f"int4 weights (input {place}): {name}", with_constant(wide, tensor, read.reshape(value.shape))


def wrong_orders(value: Array, axes: str) -> Iterator[tuple[str, Array]]:
    """Yield an array in other orders of its axes, each different one once; with height and width, also mirrored."""
    tried = {digest_of([value])}
    for name, changed in _orders(value, axes):
        digest = digest_of([changed])
        if digest not in tried:
            tried.add(digest)
            yield name, changed


def _orders(value: Array, axes: str) -> Iterator[tuple[str, Array]]:
    for order in permutations(range(value.ndim)):
        letters = "".join(axes[i] for i in order)
        yield f"read as {letters}", read_as(value, order)
        yield f"stored as {letters}", stored_as(value, order)
    spatial = [axes.index(letter) for letter in "HW" if letter in axes]
    if spatial:
        yield "rotated by half a turn", np.flip(value, tuple(spatial))
        for axis in spatial:
            yield f"mirrored along {axes[axis]}", np.flip(value, axis)


def _depthwise_multiples(alone: Model, tensor: int, value: Array) -> Iterator[TensorsMistaken]:
    """Yield a depthwise filter with its multiples in the other place: channels last or first."""
    options = view(alone).op(0).options
    times = int(options.get("depth_multiplier", 1)) if options is not None else 1
    if times == 1 or value.shape[-1] % times:
        return
    for place, shape in (("outside", (-1, times)), ("inside", (times, -1))):
        split = np.swapaxes(value.reshape(*value.shape[:-1], *shape), -1, -2)
        changed = np.ascontiguousarray(split).reshape(value.shape)
        yield f"filter with the multiplier {place} the channels", with_constant(alone, tensor, changed)


def _activations(alone: Model) -> Iterator[TensorsMistaken]:
    operator = view(alone).op(0)
    own = None if operator.options is None else operator.options.get("fused_activation_function")
    for number, name in _ACTIVATIONS.items():
        if own is not None and own != number:
            yield (
                f"{name} in place of {_ACTIVATIONS.get(int(own), own)}",
                with_option(alone, "fused_activation_function", number),
            )


def _switches(alone: Model) -> Iterator[TensorsMistaken]:
    """Yield options that are ignored, or used although the model has them off."""
    options = view(alone).op(0).options
    if options is None:
        return
    for name in _SWITCHES:
        own = options.get(name)
        if own is not None:
            yield f"{name} {'ignored' if own else 'taken'}", with_option(alone, name, not own)


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
        yield (
            f"only the first item of the batch computed, the others hold {name}",
            Under(profile, made=partial(_first_item, fill)),
        )


def _first_item(fill: Callable[[Array], Any], values: Array) -> Array:
    items = values.copy()
    items[1:] = fill(items[:1])
    return items


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
    yield from _channels_biases(alone.model, operator.inputs[2:3], channels, computed.shape[-1])
    if len(channels) <= _FEW:
        yield from _weights(alone.model, operator.inputs[1], CHANNEL_AXIS[name], channels)


def _channels_biases(
    model: Model, positions: Sequence[int], channels: Array, count: int
) -> Iterator[tuple[str, Model]]:
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
    zero = zero_point_of(spec)
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


_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply}
_VERBS = {"ADD": "added", "SUB": "subtracted", "MUL": "multiplied"}
#: Steps of a probability in an output of 8 bits.
_STEPS = 256


def mistaken_codes(alone: Part, _profile: Profile) -> Iterator[Mistaken]:
    """Yield sums, differences and products of codes, and exponentials by a table."""
    name = alone.op.builtin
    kinds = {value.dtype.kind for value in (*alone.inputs.values(), *alone.got.values())}
    if not kinds <= {"i", "u"} or len(alone.got) != 1:
        return
    if name in _OPERATORS and len(alone.op.inputs) == 2:
        for wraps, end in ((False, ""), (True, ", and wrap")):
            yield f"scales and zero points ignored: codes are {_VERBS[name]}{end}", _on_codes(_OPERATORS[name], wraps)
    if name == "SOFTMAX" and next(iter(alone.got.values())).dtype.itemsize == 1:
        for one in (32767, 32768):
            for half, rounding in ((0, "rounded down"), (1, "rounded half up")):
                yield f"exponentials by a table of 15 bits (1 is {one}), quotient {rounding}", _by_table(one, half)


def _on_codes(operator: Callable[[Array, Array], Array], wraps: bool) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        a, b = (alone.inputs.get(t, alone.graph.constant(t)) for t in alone.op.inputs)
        if a is None or b is None:
            return {}
        codes = operator(a.astype(np.int64), b.astype(np.int64))
        limited = codes if wraps else np.clip(codes, *type_range(dumped.dtype))
        return {tensor: limited.astype(dumped.dtype)}

    return device


def _by_table(one: int, half: int) -> Device:
    def device(alone: Part) -> Mapping[int, Array]:
        ((tensor, dumped),) = alone.got.items()
        operand = alone.op.inputs[0]
        q, options = alone.graph.tensors[operand].quantization, alone.op.options
        if q is None or not q.scale.size:
            return {}
        beta = 1.0 if options is None else float(options.get("beta", 1.0) or 1.0)
        x = alone.inputs[operand].astype(np.int64)
        below = x.max(-1, keepdims=True) - x
        raised = np.rint(one * np.exp(-below * float(q.scale[0]) * beta)).astype(np.int64)
        total = raised.sum(-1, keepdims=True)
        low, high = type_range(dumped.dtype)
        codes = (raised * _STEPS + half * (total >> 1)) // total + low
        return {tensor: np.clip(codes, low, high).astype(dumped.dtype)}

    return device
