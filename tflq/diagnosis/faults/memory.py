"""Faults of memory: constants, overwritten blocks, nothing computed.

One constant of the model has another value in the device's memory: a bit, a byte, a word or a block of one channel.

Candidates are computed together: as output channels of one operator, which differ in one constant each.

One block of memory with other contents: overwritten after it was read, never written, or left from before.

Nothing was computed: constants, results of another sample, unwritten memory, skipped operators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np

from tflq.diagnosis.case import OperatorCase
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import Defect, DefectKind, WrongResult, certainty_of, wrong_result
from tflq.diagnosis.mistakes.tensors import BIASES, CHANNEL_AXIS
from tflq.engine.api.many import Part, part_of
from tflq.errors import TflqError
from tflq.model.ir import STORED_BITS, Quantization, TensorSpec, TensorType, view
from tflq.model.surgery.tap import with_constant, with_option, with_tensor
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


def changed_constant(case: WrongResult) -> Defect | None:
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


def _channel(case: WrongResult) -> _Channel | None:
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


def _fitting(case: WrongResult, channel: _Channel, changes: Iterator[_Changed]) -> tuple[list[str], int]:
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


def _outputs(part: Part, case: WrongResult, channel: _Channel, changes: Sequence[_Changed]) -> Array | None:
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


#: Share of a block that must differ, and of the tensor that it may cover.
_DENSE, _WHOLE = 0.5, 0.95
#: Number of differing elements below which places show nothing.
_ENOUGH = 4


def overwritten(case: WrongResult) -> Defect | None:
    """Return that one block of a tensor was overwritten after its readers had run; None if that is not shown."""
    block = block_of(case)
    if block is None:
        return None
    low, high, _ = block
    if _as_read(case) == "right":
        whose = _contents(case, low, high)
        name = f"tensor {case.tensor} was overwritten after operator {_reader(case)} read it{whose and f', by {whose}'}"
        cleared = f"operator {case.index} {case.op.name} is right: its reader's results follow from its right values"
        tell = "copy each tensor right after its operator, or keep all of them (preserve_all_tensors)"
        where = block_text(case, low, high)
        return Defect(DefectKind.OVERWRITTEN, name, Certainty.CERTAIN, case.tensor, where, cleared, tell)
    return None


def replaced(case: WrongResult) -> Defect | None:
    """Return that the readers of a few lost samples had read the right values; None if that is not shown.

    Where most samples differ, each operator may have been tested alone, on right inputs: then it may be at fault. So
    may an operator on floats, whose ranges differ from sample to sample.
    """
    wrong = [k for k, mask in enumerate(case.masks) if mask.any()]
    is_lost = case.differing >= max(_ENOUGH, _DENSE * len(wrong) * case.apart.size)
    is_float = case.observed[0].dtype.kind == "f"
    if is_float or not is_lost or 2 * len(wrong) > len(case.masks) or _as_read(case) != "right":
        return None
    whose = _contents(case, 0, case.apart.size)
    holds = whose if whose.startswith("the constant") else "other values"
    name = f"tensor {case.tensor} holds {holds}, not what operator {_reader(case)} read"
    cleared = f"operator {case.index} {case.op.name} is right: its reader's results follow from its right values"
    tell = "copy each tensor right after its operator, or keep all of them (preserve_all_tensors)"
    listed = ", ".join(map(str, wrong[:8])) + (", ..." if len(wrong) > 8 else "")
    some = f"sample{'s' if len(wrong) > 1 else ''} {listed} of {len(case.masks)}"
    return Defect(DefectKind.OVERWRITTEN, name, Certainty.CERTAIN, case.tensor, f"in {some}", cleared, tell)


def in_dump_only(case: WrongResult, found: Defect) -> Defect:
    """Return a fault of places as one of the dump, if the tensor's reader computed from the right values."""
    if found.kind != DefectKind.ADDRESSING or _as_read(case) != "right":
        return found
    name = f"{found.name}, in the dump only: operator {_reader(case)} read right values"
    return replace(found, kind=DefectKind.BLOCK, name=name)


def foreign_block(case: WrongResult) -> Defect | None:
    """Return that one block holds a constant, older results or another tensor; None if it holds none of these."""
    block = block_of(case)
    whose = "" if block is None else _contents(case, *block[:2])
    if block is None or not whose:
        return None
    low, high, bits = block
    read = _as_read(case)
    before = ", before its reader read it" if read == "wrong" else ""
    name = f"one block of tensor {case.tensor} holds {whose}{before}: memory was not written, or overwritten"
    tell = "" if read else "record all tensors: whether later operators read the right values shows when it happened"
    where = block_text(case, low, high)
    return Defect(DefectKind.BLOCK, name, certainty_of(bits), case.tensor, where, case.equal_text(), tell)


def block_of(case: WrongResult) -> tuple[int, int, float] | None:
    """Return the only differing block as flat places, and the bits of evidence that it is no chance."""
    flat = case.apart.reshape(-1)
    places = np.flatnonzero(flat)
    if len(places) < _ENOUGH or flat.size < 2 * _ENOUGH:
        return None
    low, high = int(places[0]), int(places[-1]) + 1
    length = high - low
    if len(places) < _DENSE * length or length > _WHOLE * flat.size:
        return None
    bits = (len(places) - 1) * math.log2(flat.size / length)
    return (low, high, bits) if certainty_of(bits) != Certainty.NONE else None


def block_text(case: WrongResult, low: int, high: int) -> str:
    """Return the elements, bytes and whole rows of a block."""
    size, item, shape = case.apart.size, case.apart.size and case.observed[0].itemsize, case.apart.shape
    end = " (its end)" if high == size else " (its beginning)" if low == 0 else ""
    text = f"elements {low:,} to {high - 1:,} of {size:,}, byte offset {low * item:,} to {high * item - 1:,}{end}"
    if len(shape) == 4:
        row = shape[2] * shape[3]
        text += f"; rows {low // row} to {(high - 1) // row} of {shape[0] * shape[1]}"
    return text


def _contents(case: WrongResult, low: int, high: int) -> str:
    """Return what the block holds, if that is recognized in every sample that differs."""
    wrong = [k for k, mask in enumerate(case.masks) if mask.any()]
    blocks = {k: case.observed[k].reshape(-1)[low:high] for k in wrong}
    if len({v for block in blocks.values() for v in np.unique(block).tolist()}) == 1:
        return f"the constant {next(iter(blocks.values()))[0]:g}"
    later = {k: b for k, b in blocks.items() if k > 0}
    if later and all(np.array_equal(b, case.expected[k - 1].reshape(-1)[low:high]) for k, b in later.items()):
        return "the right result of the sample before (stale)"
    others = {t: name for k in wrong[:1] for t, name in _tensors_with(case, k, blocks[k]).items()}
    return next(iter(others.values()), "")


def _tensors_with(case: WrongResult, sample: int, block: Array) -> Mapping[int, str]:
    """Return other tensors of the dump that hold the block's bytes."""
    data = np.ascontiguousarray(block).tobytes()
    if len(np.unique(block)) < _ENOUGH or len(data) < 8:
        return {}
    found = {}
    for tensor, value in case.dumps[sample].tensors.items():
        if tensor != case.tensor and value.dtype.kind in "iuf":
            at = np.ascontiguousarray(value).tobytes().find(data)
            if at >= 0:
                found[tensor] = f"the bytes of tensor {tensor} at offset {at:,}"
    return found


def _reader(case: WrongResult) -> int:
    """Return the first operator that reads the tensor."""
    return view(case.model).readers(case.tensor)[0].index


def _as_read(case: WrongResult) -> str:
    """Return whether readers' results follow from the "right" values or from the dumped, "wrong" ones; else ""."""
    votes = set()
    for reader in view(case.model).readers(case.tensor):
        for k, mask in enumerate(case.masks):
            if mask.any():
                votes |= _vote(case, k, reader.index, reader.writes)
    return votes.pop() if len(votes) == 1 else ""


def _vote(case: WrongResult, sample: int, reader: int, results: tuple[int, ...]) -> set[str]:
    dump = case.dumps[sample].tensors
    fits = {}
    for word, value in (("right", case.expected[sample]), ("wrong", case.observed[sample])):
        try:
            part = part_of(case.model, (reader,), {**dump, case.tensor: value})
            made = part.run(part.plan(case.profile))
        except TflqError:
            return set()
        known = [t for t in results if t in dump and t in made]
        fits[word] = bool(known) and all(np.array_equal(made[t], dump[t]) for t in known)
    return {word for word, is_right in fits.items() if is_right} if sum(fits.values()) == 1 else set()


_POISON = "fill the output's memory with a pattern before each run and record again: what keeps it was not written"
_ORDER = "feed the samples in another order: results of the sample before move with it"
#: Elements from which on one value for all of them is no chance.
_NOTHING_COMPUTED_ENOUGH = 3


def nothing_computed(case: WrongResult) -> Defect | None:
    """Return why a result does not depend on its operator's inputs; None if it may."""
    if _may_be_flushed(case):
        return None
    return _unsteady(case) or _constant(case) or _frozen(case) or _stale(case) or _skip(case)


def _may_be_flushed(case: WrongResult) -> bool:
    """Return whether all results are 0 where none is as large as a normal number: they may be flushed to zero."""
    if case.observed[0].dtype != np.float32:
        return False
    tiny = np.finfo(np.float32).tiny
    return all(not o.any() for o in case.observed) and all(bool(np.all(np.abs(e) < tiny)) for e in case.expected)


def _defect(
    case: WrongResult, name: str, certainty: Certainty, tell: str, place: str = "", *, is_told: bool = True
) -> Defect:
    cleared = "no arithmetic can be read from it, so none is named"
    return Defect(DefectKind.NOTHING, name, certainty, case.tensor, place, cleared, tell, is_told)


def is_constant(case: WrongResult) -> bool:
    """Return whether all elements of all samples have one value, although the right ones differ."""
    first = case.observed[0].reshape(-1)[:1]
    if not first.size or not np.isfinite(first).all() or sum(o.size for o in case.observed) < _NOTHING_COMPUTED_ENOUGH:
        return False
    same = all(_same(o, np.broadcast_to(first.reshape((1,) * o.ndim), o.shape)) for o in case.observed)
    return same and len({v for e in case.expected for v in np.unique(e).tolist()}) > 1


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _constant(case: WrongResult) -> Defect | None:
    if not is_constant(case):
        return None
    value = case.observed[0].reshape(-1)[0].item()
    many = f" in all {len(case.observed)} samples" if len(case.observed) > 1 else ""
    meaning = _meaning(case, value)
    name = f"the output is the constant {value:g}{meaning}{many}"
    if meaning.endswith("code)"):
        return _defect(
            case, f"{name}: nothing was computed, or every result saturates", Certainty.NONE, _POISON, is_told=False
        )
    return _defect(case, f"nothing was computed: {name}, never written or read too early", Certainty.LIKELY, _POISON)


def _meaning(case: WrongResult, value: float) -> str:
    """Return the meaning of a constant code."""
    q, kind = case.spec.quantization, case.observed[0].dtype
    if q is not None and q.zero_point.size and kind.kind in "iu" and int(q.zero_point[0]) == value:
        return " (the zero point)"
    if kind.kind in "iu" and value in (np.iinfo(kind).min, np.iinfo(kind).max):
        return f" (the {'lowest' if value == np.iinfo(kind).min else 'highest'} code)"
    return ""


def _frozen(case: WrongResult) -> Defect | None:
    """Return that all samples have one result, although the right ones differ."""
    first = case.observed[0]
    apart = [e for e in case.expected[1:] if not _same(e, case.expected[0])]
    if len(case.observed) < 2 or not apart or not all(_same(o, first) for o in case.observed[1:]):
        return None
    own = next((k for k, e in enumerate(case.expected) if _same(e, first)), None)
    whose = "" if own is None else f", the right one of sample {own}"
    sure = own is not None and len(np.unique(first)) > _NOTHING_COMPUTED_ENOUGH
    name = f"the output is the same in all {len(case.observed)} samples{whose}"
    if own is not None:
        certainty = Certainty.CERTAIN if sure else Certainty.LIKELY
        return _defect(case, f"{name}: it is stale, not written again", certainty, _POISON, is_told=sure)
    before = "an operator before it may saturate, or it" if case.is_assumed else "its operator saturates, or it"
    return _defect(case, f"{name}: {before} was written once only", Certainty.NONE, _POISON, is_told=False)


def _stale(case: WrongResult) -> Defect | None:
    """Return that samples hold the right result of the one before."""
    pairs = list(zip(case.observed[1:], case.expected[:-1], case.expected[1:], strict=True))
    telling = [len(np.unique(before)) for o, before, own in pairs if not _same(before, own)]
    if not telling or not all(_same(o, before) for o, before, _ in pairs):
        return None
    name = "stale results: each sample holds the right result of the sample before (the previous run's output was read)"
    sure = sum(telling) > 2 * _NOTHING_COMPUTED_ENOUGH
    place = "samples are one late"
    return _defect(case, name, Certainty.CERTAIN if sure else Certainty.LIKELY, _ORDER, place)


def _unsteady(case: WrongResult) -> Defect | None:
    """Return that equal inputs gave different results, of an operator without state."""
    if any(spec is not None and spec.is_variable for spec in case.op.input_specs):
        return None
    for one, other in combinations(range(len(case.parts)), 2):
        mine, theirs = (case.parts[k].inputs for k in (one, other))
        if any(not _same(mine[t], theirs[t]) for t in mine) or case.parts[one].variables:
            continue
        given = [case.dumps[one].tensors[t] for t in view(case.model).inputs if t in case.dumps[one].tensors]
        if case.is_assumed and any(map(_is_one_code, (*mine.values(), *given))):
            continue  # other inputs may have been clipped to that code
        is_unsteady = not _same(case.observed[one], case.observed[other])
        if is_unsteady and _same(case.expected[one], case.expected[other]) and not _is_doubtful(case, (one, other)):
            count = int(np.count_nonzero(case.observed[one] != case.observed[other]))
            name = "the result changes between equal runs: uninitialized memory, or a race"
            size = case.observed[one].size
            place = f"samples {one} and {other} have equal inputs, and {count:,} of {size:,} elements differ"
            return _defect(case, name, Certainty.CERTAIN, _POISON, place)
    return None


def _is_one_code(value: Array) -> bool:
    return bool(value.dtype.kind in "iu" and value.size > _NOTHING_COMPUTED_ENOUGH and (value == value.flat[0]).all())


def _is_doubtful(case: WrongResult, samples: tuple[int, int]) -> bool:
    """Return whether an input in the dump is not what the profile computes: it may have changed after it was read."""
    graph = view(case.model)
    makers = {maker.index for t in case.op.inputs if t >= 0 and (maker := graph.maker(t)) is not None}
    before = (OperatorCase(case.model, (case.dumps[k],), i, case.profile) for i in makers for k in samples)
    wrong = map(wrong_result, before)
    return any(one is not None and one.tensor in case.op.inputs for one in wrong)


def _skip(case: WrongResult) -> Defect | None:
    """Return that the result holds an input as it is."""
    for position in case.parts[0].inputs:
        pairs = [(p.inputs[position], o) for p, o in zip(case.parts, case.observed, strict=True)]
        if any(x.dtype != o.dtype or x.size != o.size for x, o in pairs):
            continue
        values = sum(len(np.unique(o)) for _, o in pairs)
        if values > 2 * _NOTHING_COMPUTED_ENOUGH and all(_same(x.reshape(-1), o.reshape(-1)) for x, o in pairs):
            operand = case.op.inputs.index(case.parts[0].tensors[position])
            name = f"{case.op.name} was skipped: its output holds its input {operand} unchanged"
            return _defect(case, name, Certainty.CERTAIN, _POISON)
    return None
