"""One constant of the model has another value in the device's memory: a bit, a byte, a word or a block of one channel.

Candidates are computed together: as output channels of one operator, which differ in one constant each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Case
from tflq.diagnosis.faults.defect import Defect, DefectKind, certainty_of
from tflq.diagnosis.mistakes.channels import CHANNEL_AXIS
from tflq.diagnosis.mistakes.tensors import BIASES
from tflq.engine.api.part import Part
from tflq.errors import TflqError
from tflq.model.ir import STORED_BITS, Quantization, TensorSpec, TensorType, view
from tflq.model.surgery.edit import with_constant, with_option, with_tensor
from tflq.typing import Array

#: Candidates of one run, and products that a search computes at most.
_AT_ONCE, _WORK = 1024, 1 << 29
#: Sizes of blocks that are erased, in bytes, and the contents of erased memory.
_BLOCKS, _ERASED = (1, 2, 4, 8, 16, 32, 64), (0x00, 0xFF)
_TELL = "compare the model's bytes on the device with the file (a checksum), and write them again"


@dataclass(frozen=True, slots=True, eq=False)
class _Channel:
    """The constants of one output channel: its weights in order of memory, their places in the tensor, and its bias."""

    number: int
    weights: Array
    places: Array
    tensor: int  # of the weights, in the part
    bias: int  # the same; -1 if there is none
    offset: int  # its value


#: A change in words, the weights with it, and the bias with it.
_Changed = tuple[str, Array, int]


def changed_constant(case: Case) -> Defect | None:
    """Return the only change of one constant that gives the dumped results, if one channel is all that differs."""
    channel = _channel(case)
    if channel is None:
        return None
    for listing in (_bits, _blocks, _values):
        found, tried = _fitting(case, channel, listing(channel))
        bits = 2 * min(case.differing, 4 * sum(len(np.unique(o)) for o in case.observed)) - math.log2(max(1, tried))
        if found and certainty_of(bits) != Certainty.NONE:
            where = f"channel {channel.number}"
            name = f"{found[0]} in the device's memory ({where})"
            if len(found) > 1:
                name = f"one constant of {where} changed in the device's memory: {' or '.join(found[:3])}"
            weights = case.parts[0].tensors[channel.tensor]
            place = f"all {case.differing:,} differing elements are in {where}; its weights are tensor {weights}"
            cleared = f"with that change the right arithmetic gives every element; {case.equal_text()}"
            return Defect(
                DefectKind.CONSTANT, name, certainty_of(bits), case.tensor, place, cleared, _TELL, is_told=False
            )
    return None


def _channel(case: Case) -> _Channel | None:
    """Return the only differing channel of an operator with constant 8-bit weights; else None."""
    op, part = case.op, case.parts[0]
    axis, count = CHANNEL_AXIS.get(op.builtin), case.apart.shape[-1] if case.apart.ndim else 0
    if axis is None or count < 2 or case.observed[0].dtype.kind not in "iu":
        return None
    apart = np.flatnonzero(case.apart.reshape(-1, count).any(axis=0))
    tensor = part.op.inputs[1]
    spec, weights = part.graph.operand(tensor), part.graph.constant(tensor)
    is_wide = spec is not None and isinstance(spec.type, TensorType) and STORED_BITS.get(spec.type, 0) == 8
    if len(apart) != 1 or weights is None or not is_wide or weights.shape[axis] != count:
        return None
    number = int(apart[0])
    places = np.arange(weights.size).reshape(weights.shape).take(number, axis)
    at = BIASES[op.builtin]
    bias = part.op.inputs[at] if len(part.op.inputs) > at else -1
    values = part.graph.constant(bias) if bias >= 0 else None
    own = weights.take(number, axis).reshape(-1)
    return _Channel(
        number,
        own,
        places.reshape(-1),
        tensor,
        bias if values is not None else -1,
        0 if values is None else int(values[number]),
    )


def _bits(channel: _Channel) -> Iterator[_Changed]:
    """Yield one bit of a weight, or of the bias, flipped."""
    raw = channel.weights.view(np.uint8)
    for k in range(len(raw)):
        for bit in range(8):
            changed = raw.copy()
            changed[k] ^= np.uint8(1 << bit)
            new = changed.view(channel.weights.dtype)
            yield f"bit {bit} of {_weight(channel, k, int(new[k]))} flipped", new, channel.offset
    for bit in range(31) if channel.bias >= 0 else ():
        yield f"bit {bit} of the bias flipped", channel.weights, channel.offset ^ (1 << bit)


def _weight(channel: _Channel, k: int, new: int) -> str:
    return f"the weight at byte {channel.places[k]} ({channel.weights[k]} became {new})"


def _blocks(channel: _Channel) -> Iterator[_Changed]:
    """Yield blocks of weights that hold erased memory, where the channel's weights lie together."""
    raw = channel.weights.view(np.uint8)
    first = int(channel.places[0])
    for size in _BLOCKS if len(raw) > 1 and channel.places[-1] - first == len(raw) - 1 else ():
        for start in range(-(first % size), len(raw), size):
            for erased in _ERASED:
                low, high = max(0, start), min(len(raw), start + size)
                changed = raw.copy()
                changed[low:high] = erased
                text = f"weights at bytes {first + low} to {first + high - 1} hold {erased:#04x}"
                yield text, changed.view(channel.weights.dtype), channel.offset


def _values(channel: _Channel) -> Iterator[_Changed]:
    """Yield every other value of one weight."""
    limits = np.iinfo(channel.weights.dtype)
    for k in range(len(channel.weights)):
        for value in range(limits.min, limits.max + 1):
            changed = channel.weights.copy()
            changed[k] = value
            yield _weight(channel, k, value), changed, channel.offset


def _fitting(case: Case, channel: _Channel, changes: Iterator[_Changed]) -> tuple[list[str], int]:
    """Return the changes that give every element of the channel in all samples, and the number of changes tried."""
    order = sorted(range(len(case.parts)), key=lambda k: -int(np.count_nonzero(case.masks[k])))
    places = case.observed[0][..., 0].size
    most, tried, found = max(1, _WORK // max(1, places * len(channel.weights))), 0, list[str]()
    while tried < most and (left := list(islice(changes, min(_AT_ONCE, most - tried)))):
        tried += len(left)
        for k in order:
            made = _outputs(case.parts[k], case, channel, left)
            if made is None:
                return [], tried
            seen = case.observed[k][..., channel.number]
            fits = (made == seen[..., None]).reshape(-1, len(left)).all(axis=0)
            left = [change for change, is_fitting in zip(left, fits, strict=True) if is_fitting]
            if not left:
                break
        found += [text for text, _, _ in left]
    return found, tried


def _outputs(part: Part, case: Case, channel: _Channel, changes: Sequence[_Changed]) -> Array | None:
    """Return the channel under each change, as channels of one run; None if the operator cannot run so."""
    count, op = len(changes), part.op
    axis = CHANNEL_AXIS[op.builtin]
    weights = part.graph.constant(channel.tensor)
    assert weights is not None
    shape = [n for i, n in enumerate(weights.shape) if i != axis]
    rows = np.stack([changed for _, changed, _ in changes]).reshape(count, *shape)
    inputs = dict(part.inputs)
    try:
        model = with_constant(part.model, channel.tensor, np.ascontiguousarray(np.moveaxis(rows, 0, axis)))
        model = with_tensor(
            model, channel.tensor, _repeated(view(model).tensors[channel.tensor], channel.number, count)
        )
        if channel.bias >= 0:
            biases = part.graph.constant(channel.bias)
            assert biases is not None
            model = with_constant(model, channel.bias, np.array([offset for _, _, offset in changes], biases.dtype))
            model = with_tensor(
                model, channel.bias, _repeated(view(model).tensors[channel.bias], channel.number, count)
            )
        if op.builtin == "DEPTHWISE_CONV_2D":
            own = channel.number * inputs[op.inputs[0]].shape[-1] // weights.shape[axis]
            inputs[op.inputs[0]] = np.ascontiguousarray(inputs[op.inputs[0]][..., own : own + 1])
            model = with_option(model, "depth_multiplier", count)
        output = part.graph.tensors[op.outputs[0]]
        model = with_tensor(
            model, op.outputs[0], replace(output, shape=(*output.shape[:-1], count), shape_signature=None)
        )
        if op.builtin == "TRANSPOSE_CONV":
            made = part.graph.constant(op.inputs[0])
            if made is None:
                return None
            model = with_constant(model, op.inputs[0], np.array([*made[:-1], count], made.dtype))
        other = replace(part, model=model, inputs=inputs, got={})
        return np.asarray(other.run(other.plan(case.profile))[case.tensor])
    except TflqError:
        return None


def _repeated(spec: TensorSpec, channel: int, count: int) -> TensorSpec:
    """Return a tensor's entry with one channel's scale and zero point for all of `count` channels."""
    q = spec.quantization
    if q is None or q.scale.size < 2:
        return spec
    zeros = q.zero_point if q.zero_point.size < 2 else np.full(count, q.zero_point[channel])
    own: Quantization = replace(q, scale=np.full(count, q.scale[channel]), zero_point=zeros)
    return replace(spec, quantization=own)
