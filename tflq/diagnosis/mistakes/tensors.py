"""Mistakes in reading the operator's own model: zero points, biases, filters, options.

Each is the single operator's model with one of its tensors or options changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import permutations
from typing import Any

import numpy as np

from tflq.engine.kernels.families.activation import LIMITS
from tflq.engine.numerics.stages import type_range
from tflq.model.ir import STORED_BITS, Model, TensorSpec, TensorType, view
from tflq.model.surgery.edit import with_constant, with_option, with_tensor
from tflq.typing import Array

Mistaken = tuple[str, Model]

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


def mistaken_models(alone: Model) -> Iterator[Mistaken]:
    """Yield a single operator's model with one of its tensors or options misread."""
    yield from _zero_points(alone)
    yield from _biases(alone)
    yield from _float_biases(alone)
    yield from _scales(alone)
    yield from _filters(alone)
    yield from _narrow_codes(alone)
    yield from _activations(alone)
    yield from _switches(alone)


def _zero_points(alone: Model) -> Iterator[Mistaken]:
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


def _biases(alone: Model) -> Iterator[Mistaken]:
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
        tried = {value.tobytes()}
        wrong = _wrong_biases(value.astype(np.int64), _relative_scales(alone, spec, value.size))
        for name, changed in (*wrong, *_wrong_bytes(value)):
            clamped = np.clip(changed, *type_range(value.dtype)).astype(value.dtype)
            if clamped.tobytes() not in tried:
                tried.add(clamped.tobytes())
                yield name, with_constant(alone, tensor, clamped)


def _float_biases(alone: Model) -> Iterator[Mistaken]:
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


def _scales(alone: Model) -> Iterator[Mistaken]:
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


def _filters(alone: Model) -> Iterator[Mistaken]:
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


def _narrow_codes(alone: Model) -> Iterator[Mistaken]:
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
    tried = {_digest(value)}
    for name, changed in _orders(value, axes):
        digest = _digest(changed)
        if digest not in tried:
            tried.add(digest)
            yield name, changed


def _digest(value: Array) -> bytes:
    return blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).digest()


def _orders(value: Array, axes: str) -> Iterator[tuple[str, Array]]:
    flat = np.ascontiguousarray(value).reshape(-1)
    for order in permutations(range(value.ndim)):
        letters = "".join(axes[i] for i in order)
        back: Any = np.argsort(order)
        read = flat.reshape([value.shape[i] for i in order]).transpose(back)
        yield f"read as {letters}", np.ascontiguousarray(read)
        yield f"stored as {letters}", np.ascontiguousarray(value.transpose(order)).reshape(value.shape)
    spatial = [axes.index(letter) for letter in "HW" if letter in axes]
    if spatial:
        yield "rotated by half a turn", np.flip(value, tuple(spatial))
        for axis in spatial:
            yield f"mirrored along {axes[axis]}", np.flip(value, axis)


def _depthwise_multiples(alone: Model, tensor: int, value: Array) -> Iterator[Mistaken]:
    """Yield a depthwise filter with its multiples in the other place: channels last or first."""
    options = view(alone).op(0).options
    times = int(options.get("depth_multiplier", 1)) if options is not None else 1
    if times == 1 or value.shape[-1] % times:
        return
    for place, shape in (("outside", (-1, times)), ("inside", (times, -1))):
        split = np.swapaxes(value.reshape(*value.shape[:-1], *shape), -1, -2)
        changed = np.ascontiguousarray(split).reshape(value.shape)
        yield f"filter with the multiplier {place} the channels", with_constant(alone, tensor, changed)


def _activations(alone: Model) -> Iterator[Mistaken]:
    operator = view(alone).op(0)
    own = None if operator.options is None else operator.options.get("fused_activation_function")
    for number, name in _ACTIVATIONS.items():
        if own is not None and own != number:
            yield (
                f"{name} in place of {_ACTIVATIONS.get(int(own), own)}",
                with_option(alone, "fused_activation_function", number),
            )


def _switches(alone: Model) -> Iterator[Mistaken]:
    """Yield options that are ignored, or used although the model has them off."""
    options = view(alone).op(0).options
    if options is None:
        return
    for name in _SWITCHES:
        own = options.get(name)
        if own is not None:
            yield f"{name} {'ignored' if own else 'taken'}", with_option(alone, name, not own)
