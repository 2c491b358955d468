"""Mistakes in an operator's structure: another axis, order of operands, of blocks or of equal elements, or broadcast.

Results depend on all elements. Some devices write a result of another shape, and it is read in the shape of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, permutations

import numpy as np

from tflq.diagnosis.mistakes.device import Device, DeviceChange, Turn, Under, Values, read_as, stored_as
from tflq.engine.api.many import Part
from tflq.engine.profiles import Profile
from tflq.model.ir import Model
from tflq.model.ir.model import enum
from tflq.model.surgery.tap import with_constant, with_operator, with_option, with_tensors
from tflq.typing import Array

#: By operator, where its axis or axes are: the name of an option, or the number of a constant input.
_AXIS: dict[str, str | int] = {
    **dict.fromkeys(("CONCATENATION", "GATHER", "ONE_HOT", "PACK", "UNPACK"), "axis"),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "CUMSUM", "MEAN", "REVERSE_V2", "SUM", "REDUCE_PROD"), 1),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), 1),
    "REVERSE_SEQUENCE": "seq_dim",
    "SPLIT": 0,
    "SPLIT_V": 2,
}
#: Operators that compute along the last axis.
_LAST_AXIS = ("L2_NORMALIZATION", "LOCAL_RESPONSE_NORMALIZATION", "LOG_SOFTMAX", "SOFTMAX", "TOPK_V2")
#: Operators that compute each element from the operands' elements at its place.
_BROADCAST = (
    "ADD",
    "DIV",
    "FLOOR_DIV",
    "FLOOR_MOD",
    "MAXIMUM",
    "MINIMUM",
    "MUL",
    "POW",
    "PRELU",
    "SQUARED_DIFFERENCE",
    "SUB",
)
#: Pairs of operators that devices mistake for each other.
_TWINS = (
    ("ARG_MAX", "ARG_MIN"),
    ("AVERAGE_POOL_2D", "MAX_POOL_2D"),
    ("CEIL", "FLOOR"),
    ("EQUAL", "NOT_EQUAL"),
    ("GREATER", "GREATER_EQUAL"),
    ("LESS", "LESS_EQUAL"),
    ("LOGICAL_AND", "LOGICAL_OR"),
    ("MAXIMUM", "MINIMUM"),
    ("MEAN", "SUM"),
    ("REDUCE_MAX", "REDUCE_MIN"),
    ("RELU", "RELU6"),
)
#: Numbers of pairs of inputs, of axes and of orders that are tried.
_PAIRS, _AXES, _ORDERS = 15, 24, 24


def mistaken_structure(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the operator's other axes, orders and shapes."""
    for found in (
        _axes,
        _operands,
        _twins,
        _parameters,
        _last_of_equal,
        _blocks,
        _paddings,
        _permutations,
        _broadcasts,
    ):
        yield from found(alone, profile)


def _of_model(name: str, profile: Profile, model: Model) -> DeviceChange:
    """Return the operator with another model, its results in the shapes of the file."""
    return DeviceChange(name, profile, model, run=_shaped(lambda alone: alone.run(alone.plan(profile, model))))


def _shaped(device: Device) -> Device:
    def shaped(alone: Part) -> Values:
        values = dict(device(alone))
        for tensor, got in alone.got.items():
            if tensor in values and values[tensor].size == got.size:
                values[tensor] = np.ascontiguousarray(values[tensor]).reshape(got.shape)
        return values

    return shaped


def _axes(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield other axes: of the options, of a constant, or in place of the last one."""
    name, graph = alone.op.builtin, alone.graph
    image = next((x for x in alone.inputs.values() if x.ndim > 1), None)
    if image is None:
        return
    rank, last = image.ndim, image.ndim - 1
    for axis in range(last) if name in _LAST_AXIS else ():
        turn = Turn(*(partial(np.swapaxes, axis1=axis, axis2=last),) * 2)
        turned = {t: turn for t, x in alone.inputs.items() if x.ndim == rank}
        yield DeviceChange(f"computed along axis {axis} in place of axis {last}", profile, given=turned, made=turn)
    if name in ("SOFTMAX", "L2_NORMALIZATION", "LOG_SOFTMAX"):
        flat = Turn(lambda x: x.reshape(1, -1), lambda x: x.reshape(image.shape))
        back = Turn(flat.back, flat.there)
        yield DeviceChange(
            "computed over all axes in place of the last axis",
            profile,
            given=dict.fromkeys(alone.inputs, flat),
            made=back,
        )
    place = _AXIS.get(name)
    if isinstance(place, str) and alone.op.options is not None:
        own = int(alone.op.options.get(place, 0))
        for axis in range(rank + (name in ("PACK", "ONE_HOT"))):
            if axis not in (own, own + rank):
                yield _of_model(
                    f"along axis {axis} in place of axis {own % rank if own < 0 else own}",
                    profile,
                    with_option(alone.model, place, axis),
                )
    elif isinstance(place, int):
        tensor = alone.op.inputs[place]
        value = graph.constant(tensor)
        if value is None or not value.size:
            return
        owns = sorted({int(a) % rank for a in value.reshape(-1)})
        for axes in islice(combinations(range(rank), len(owns)), _AXES):
            if list(axes) != owns and value.size == len(owns):
                changed = np.array(axes, value.dtype).reshape(value.shape)
                yield _of_model(
                    f"along {_listed(axes)} in place of {_listed(owns)}",
                    profile,
                    with_constant(alone.model, tensor, changed),
                )


def _listed(axes: Sequence[int]) -> str:
    return f"ax{'is' if len(axes) == 1 else 'es'} {', '.join(map(str, axes))}"


def _operands(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield two inputs or two results exchanged, and all of them in reverse."""
    record, specs = alone.op.record, alone.graph.tensors
    inputs = alone.op.inputs
    alike = [i for i, t in enumerate(inputs) if t >= 0]
    pairs = ((i, k) for i, k in combinations(alike, 2) if specs[inputs[i]].type == specs[inputs[k]].type)
    for i, k in islice(pairs, _PAIRS):
        order = list(inputs)
        order[i], order[k] = order[k], order[i]
        yield _of_model(
            f"inputs {i} and {k} exchanged", profile, with_operator(alone.model, replace(record, inputs=tuple(order)))
        )
    if len(alike) > 2 and len(alike) == len(inputs):
        yield _of_model(
            "inputs in reversed order", profile, with_operator(alone.model, replace(record, inputs=tuple(inputs[::-1])))
        )
    made = [alone.tensors[t] for t in alone.op.outputs if t >= 0 and alone.tensors[t] in alone.got]
    for i, k in islice(combinations(range(len(made)), 2), _PAIRS):
        yield DeviceChange(
            f"results {i} and {k} exchanged", run=_exchanged(profile, {made[i]: made[k], made[k]: made[i]})
        )
    if len(made) > 2:
        reverse = dict(zip(made, made[::-1], strict=True))
        yield DeviceChange("results in reversed order", run=_exchanged(profile, reverse))


def _exchanged(profile: Profile, places: Mapping[int, int]) -> Device:
    def device(alone: Part) -> Values:
        values = alone.run(alone.plan(profile))
        return {t: values[places.get(t, t)] for t in alone.got}

    return _shaped(device)


def _twins(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the operators that are mistaken for this one."""
    code = alone.op.record.opcode_index
    for pair in _TWINS:
        for other in set(pair) - {alone.op.builtin} if alone.op.builtin in pair else ():
            codes = list(alone.model.operator_codes)
            codes[code] = replace(codes[code], builtin_code=enum("BuiltinOperator")[other], name=other)
            yield _of_model(
                f"{other} computed in place of it", profile, replace(alone.model, operator_codes=tuple(codes))
            )


def _parameters(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the scale and zero point of one tensor of the operator taken for another's."""
    specs = alone.graph.tensors
    named = [(f"input {i}", t) for i, t in enumerate(alone.op.inputs) if t in alone.inputs]
    named += [(f"output {i}", t) for i, t in enumerate(alone.op.outputs)]
    known = [
        (name, t) for name, t in named if t >= 0 and (q := specs[t].quantization) is not None and q.scale.size == 1
    ]
    for (one, a), (other, b) in islice(permutations(known, 2), _PAIRS):
        taken = replace(specs[a], quantization=specs[b].quantization)
        text = f"scale and zero point of {one} taken from {other}"
        if one.startswith("output") and other.startswith("input"):
            text = f"{other} copied without being rescaled: {text}"
        yield _of_model(text, profile, with_tensors(alone.model, {a: taken}))
    for (one, a), (other, b) in islice(combinations(known, 2), _PAIRS):
        both = {
            a: replace(specs[a], quantization=specs[b].quantization),
            b: replace(specs[b], quantization=specs[a].quantization),
        }
        yield _of_model(
            f"scales and zero points of {one} and {other} exchanged", profile, with_tensors(alone.model, both)
        )


def _last_of_equal(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the last of equal extremes: what the first one is if the axis is reversed."""
    axes = alone.graph.constant(alone.op.inputs[1]) if alone.op.builtin in ("ARG_MAX", "ARG_MIN") else None
    if axes is None or axes.size != 1 or len(alone.inputs) != 1:
        return
    ((tensor, image),) = alone.inputs.items()
    axis = int(axes.reshape(-1)[0]) % image.ndim
    last = image.shape[axis] - 1
    flip = Turn(*(partial(np.flip, axis=axis),) * 2)
    counted = Turn(*(lambda y: (last - y).astype(y.dtype),) * 2)
    word = "maxima" if alone.op.builtin == "ARG_MAX" else "minima"
    yield DeviceChange(f"the last of equal {word} in place of the first", profile, given={tensor: flip}, made=counted)


def _blocks(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield other orders of a block's rows, its columns and the channels, in the channels of the deeper image."""
    to_space = alone.op.builtin == "DEPTH_TO_SPACE"
    if alone.op.options is None or not (to_space or alone.op.builtin == "SPACE_TO_DEPTH") or len(alone.inputs) != 1:
        return
    size, tensor = int(alone.op.options.get("block_size", 1)), next(iter(alone.inputs))
    for order in islice(permutations(range(3)), 1, None):
        letters = ", ".join(("rows", "columns", "channels")[i] for i in order)
        there, back = partial(_regrouped, size, order), partial(_grouped, size, order)
        known = " (CRD, as PyTorch's pixel shuffle)" if order == (2, 0, 1) else ""
        text = f"channels in the order {letters}, the last innermost{known}: not rows, columns, channels of a block"
        if to_space:
            yield DeviceChange(text, profile, given={tensor: Turn(there, back)})
        else:
            yield DeviceChange(text, profile, made=Turn(back, there))


def _regrouped(size: int, order: tuple[int, ...], x: Array) -> Array:
    """Return channels in the order rows, columns, channels that were in another order."""
    return read_as(_split(size, x), _with_blocks(order, x)).reshape(x.shape)


def _grouped(size: int, order: tuple[int, ...], x: Array) -> Array:
    """Return channels in another order that were in the order rows, columns, channels."""
    return stored_as(_split(size, x), _with_blocks(order, x)).reshape(x.shape)


def _split(size: int, x: Array) -> Array:
    return x.reshape(*x.shape[:-1], size, size, x.shape[-1] // (size * size))


def _with_blocks(order: tuple[int, ...], x: Array) -> tuple[int, ...]:
    return (*range(x.ndim - 1), *(x.ndim - 1 + i for i in order))


def _paddings(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield the other mode of a mirror, and amounts of padding of other sides or axes."""
    name, model = alone.op.builtin, alone.model
    if name not in ("MIRROR_PAD", "PAD", "PADV2"):
        return
    if name == "MIRROR_PAD" and alone.op.options is not None:
        own = int(alone.op.options.get("mode", 0))
        modes = ("REFLECT, which leaves the edge out", "SYMMETRIC, which repeats the edge")
        yield _of_model(
            f"mode {modes[1 - own]}, in place of {modes[own].split(',')[0]}",
            profile,
            with_option(model, "mode", 1 - own),
        )
    amounts = alone.graph.constant(alone.op.inputs[1])
    if amounts is None or amounts.ndim != 2:
        return
    yield _of_model(
        "padding before and after exchanged", profile, with_constant(model, alone.op.inputs[1], amounts[:, ::-1])
    )
    for a, b in islice(combinations(range(len(amounts)), 2), _AXES):
        order = np.arange(len(amounts))
        order[[a, b]] = b, a
        yield _of_model(
            f"padding of axes {a} and {b} exchanged", profile, with_constant(model, alone.op.inputs[1], amounts[order])
        )


def _permutations(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield other orders of axes of TRANSPOSE, the inverse one among them."""
    order = alone.graph.constant(alone.op.inputs[1]) if alone.op.builtin == "TRANSPOSE" else None
    own = () if order is None else tuple(order.tolist())
    for other in islice(permutations(range(len(own))), _ORDERS) if order is not None else ():
        if other != own:
            inverse = ", the inverse" if other == tuple(np.argsort(own).tolist()) else ""
            text = f"axes in the order {list(other)}{inverse}, in place of {list(own)}"
            yield _of_model(text, profile, with_constant(alone.model, alone.op.inputs[1], np.array(other, np.int32)))


def _broadcasts(alone: Part, profile: Profile) -> Iterator[DeviceChange]:
    """Yield an operand that is broadcast along other axes, by its memory, or not at all."""
    if alone.op.builtin not in _BROADCAST or len(alone.got) != 1:
        return
    shape = next(iter(alone.got.values())).shape
    for place, tensor in enumerate(alone.op.inputs):
        value = alone.inputs.get(tensor, alone.graph.constant(tensor))
        if value is None or value.size == int(np.prod(shape)) or value.ndim > len(shape) or not shape:
            continue
        for name, form in _forms(value.shape, shape):
            text = f"{'slope' if alone.op.builtin == 'PRELU' else f'operand {place}'} {name}"
            if tensor in alone.inputs:
                yield DeviceChange(text, run=Under(profile, given={tensor: partial(_contiguous, form)}))
            else:
                yield _of_model(text, profile, with_constant(alone.model, tensor, np.ascontiguousarray(form(value))))


def _forms(own: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Yield the forms in which an operand of shape `own` may be read for results of a shape."""
    whole = (1,) * (len(shape) - len(own)) + own
    used = [i for i, n in enumerate(whole) if n > 1]
    for places in permutations(range(len(shape)), len(used)):
        other = [1] * len(shape)
        for at, i in zip(places, used, strict=True):
            other[at] = whole[i]
        if list(places) != used and all(n in (1, m) for n, m in zip(other, shape, strict=True)):
            text = f"broadcast along axes other than {used}: its axes are taken for {list(places)}"
            if len(used) == 1:
                text = f"broadcast along another axis: {places[0]} in place of {used[0]}"
            order = np.argsort(np.argsort(places))
            yield text, partial(_placed, tuple(other), used, tuple(order.tolist()), whole)
    yield "repeated by its memory, not by its axes", lambda x: np.resize(x, shape)
    yield "read from its first element only", lambda x: np.full_like(x, x.reshape(-1)[0])
    if whole[-1] == 1 and shape[-1] > 1:
        yield (
            "not broadcast: it serves channel 0 only, the other channels read 0 beyond it",
            partial(_first_only, shape[-1]),
        )


def _contiguous(form: Callable[[Array], Array], x: Array) -> Array:
    return np.ascontiguousarray(form(x))


def _placed(other: tuple[int, ...], used: list[int], order: tuple[int, ...], whole: tuple[int, ...], x: Array) -> Array:
    squeezed = x.reshape([whole[i] for i in used])
    return squeezed.transpose(np.argsort(order)).reshape(other)


def _first_only(channels: int, x: Array) -> Array:
    padded = np.zeros((*x.shape[:-1], channels), x.dtype) if x.ndim else np.zeros(channels, x.dtype)
    padded[..., 0] = x[..., 0] if x.ndim else x
    return padded
