"""Damaged cases: wrong sizes, and options, values and scales out of range.

Each is a drawn case with a few changes. Most of them must be refused; those that run must stay within their arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opfuzz.case import Array, Case
from opfuzz.draw import CODES, Draw, Shape
from opfuzz.one_operator import T
from tflq.model.ir import CARRIER, TensorType

#: Maximum number of elements of a changed operand.
LIMIT = 4096
NUMBERS = (0, 1, -1, 2, -2, 3, 5, 8, 13, 100, -100, 2**15, 2**31 - 1, -(2**31))
SCALES = (0.0, -1.0, 1e-38, 1e38, float("inf"), float("nan"), 1.0, 2.0**-31, 2.0**20)
#: A type that kernels may take in place of another.
TWINS = {"int8": "uint8", "uint8": "int8", "int32": "float32", "float32": "int32", "int16": "int8", "int64": "int32"}
#: An operand and its fed values, one array per sample; none if it is not fed.
Fed = tuple[T | None, tuple[Array, ...]]


def hostile(draw: Draw, case: Case) -> Case:
    """Return `case` with one to four changes."""
    for _ in range(draw.pick([1, 1, 2, 2, 3, 4])):
        case = draw.pick(CHANGES)(draw, case)
    return case


def _operands(case: Case) -> list[Fed]:
    columns = iter(zip(*case.samples, strict=True) if case.samples else ())
    is_fed = [t is not None and t.value is None and not t.variable for t in case.inputs]
    return [(t, next(columns, ()) if fed else ()) for t, fed in zip(case.inputs, is_fed, strict=True)]


def _with(case: Case, operands: Sequence[Fed]) -> Case:
    columns = [samples for t, samples in operands if t is not None and t.value is None and not t.variable]
    samples = tuple(zip(*columns, strict=True)) if columns else ((),) * len(case.samples)
    return replace(case, inputs=tuple(t for t, _ in operands), samples=samples)


def _shaped(operand: Fed, shape: Shape) -> Fed:
    """Return the operand with that shape; its values are repeated or cut."""
    tensor, samples = operand
    assert tensor is not None
    value = None if tensor.value is None else np.resize(np.asarray(tensor.value), shape)
    return replace(tensor, shape=shape, value=value), tuple(np.resize(sample, shape) for sample in samples)


def _other_shape(draw: Draw, shape: Shape, others: Sequence[Shape]) -> Shape:
    place = draw.int(0, max(0, len(shape) - 1))
    forms: list[Shape] = [(), shape[::-1], (*shape, 1), (1, *shape), (*shape, 2), *others]
    if shape:
        size = shape[place]
        forms += [(*shape[:place], n, *shape[place + 1 :]) for n in {0, 1, size - 1, size + 1, 2 * size, 7} if n >= 0]
        forms += [shape[:place] + shape[place + 1 :]] * 2
    fitting = [form for form in forms if np.prod(form, dtype=float) <= LIMIT]
    return tuple(draw.pick(fitting))


def reshaped_input(draw: Draw, case: Case) -> Case:
    """Return the case with another shape of one input."""
    operands = _operands(case)
    present = [i for i, (t, _) in enumerate(operands) if t is not None]
    if not present:
        return case
    place = draw.pick(present)
    tensor = operands[place][0]
    assert tensor is not None
    others = [tuple(t.shape) for t, _ in operands if t is not None]
    operands[place] = _shaped(operands[place], _other_shape(draw, tuple(tensor.shape), others))
    return _with(case, operands)


def reshaped_output(draw: Draw, case: Case) -> Case:
    """Return the case with another declared shape of one output or intermediate tensor."""
    outputs, intermediates = list(case.outputs), list(case.intermediates)
    for tensors in (outputs, intermediates):
        if tensors and draw.chance(0.7):
            place = draw.int(0, len(tensors) - 1)
            shape = _other_shape(draw, tuple(tensors[place].shape), [])
            tensors[place] = replace(tensors[place], shape=shape)
    return replace(case, outputs=tuple(outputs), intermediates=tuple(intermediates))


def values_out_of_range(draw: Draw, case: Case) -> Case:
    """Return the case with some values of one input out of any range: places, counts, keys, or NaN and infinity."""
    operands = _operands(case)
    whole = [i for i, (t, _) in enumerate(operands) if t is not None and t.type in ("int32", "int64")]
    place = draw.pick(whole) if whole and draw.chance(0.8) else draw.int(0, len(operands) - 1) if operands else -1
    if place < 0 or operands[place][0] is None:
        return case
    tensor, samples = operands[place]
    assert tensor is not None
    value = None if tensor.value is None else _spoilt(draw, np.asarray(tensor.value))
    operands[place] = replace(tensor, value=value), tuple(_spoilt(draw, sample) for sample in samples)
    return _with(case, operands)


def _spoilt(draw: Draw, array: Array) -> Array:
    if array.dtype.kind == "f":
        wild = np.array([np.nan, np.inf, -np.inf, 1e38, -1e38, -1, 0], np.float64)
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        near = int(array.max(initial=0)) + 1
        numbers = [*NUMBERS, near, near + 1, -near, -near - 1, info.min, info.max]
        wild = np.array([n for n in numbers if info.min <= n <= info.max], array.dtype)
    else:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(
            draw.rng.random(array.shape) < draw.pick([0.1, 0.5, 1.0]), draw.rng.choice(wild, array.shape), array
        ).astype(array.dtype)


def other_option(draw: Draw, case: Case) -> Case:
    """Return the case with another value of one option."""
    if case.options is None or not case.options[1]:
        return case
    table, fields = case.options[0], dict(case.options[1])
    name = draw.pick(list(fields))
    value: Any = fields[name]
    if isinstance(value, bool | np.bool_):
        fields[name] = not value
    elif isinstance(value, int | np.integer):
        fields[name] = int(draw.pick([*NUMBERS, int(value) + 1, int(value) - 1, -int(value)]))
    elif isinstance(value, float):
        fields[name] = float(draw.pick([*SCALES, -value]))
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        fields[name] = draw.pick([_spoilt(draw, value), value[:-1], np.resize(value, value.size + 1)])
    return replace(case, options=(table, fields))


def other_quantization(draw: Draw, case: Case) -> Case:
    """Return the case with an absurd scale, zero point or number of scales in one tensor."""

    def change(tensor: T) -> T:
        if tensor.scale is None:
            return replace(tensor, scale=draw.pick(SCALES), zero_point=draw.int(-300, 300))
        low, high = CODES.get(tensor.type, (-(2**31), 2**31 - 1))
        kind = draw.int(0, 4)
        if kind == 0:
            return replace(tensor, scale=draw.pick([None, *SCALES]), zero_point=0)
        if kind == 1:
            return replace(tensor, zero_point=draw.pick([low, high, low - 1, high + 1, 2 * high, -(2**31), 2**31 - 1]))
        if kind == 2:
            return replace(tensor, axis=draw.pick([*range(len(tensor.shape) + 1), -1, 100]))
        scale = np.atleast_1d(np.asarray(tensor.scale, np.float32))
        count = max(1, draw.pick([1, 2, scale.size + 1, scale.size - 1, *(int(n) for n in tensor.shape)]))
        known = np.ravel(tensor.zero_point) if np.size(tensor.zero_point) else np.zeros(1, np.int64)
        zero_point: Any = int(known[0])
        if kind == 4:  # the old number of zero points, or none
            zero_point = np.resize(known, draw.pick([0, scale.size, 1, 2]))
        return replace(tensor, scale=np.resize(scale, count), zero_point=zero_point)

    return _changed(draw, case, change)


def other_type(draw: Draw, case: Case) -> Case:
    """Return the case with another type of one tensor that is not constant."""

    def change(tensor: T) -> T:
        if tensor.value is not None or tensor.type not in TWINS:
            return tensor
        return replace(tensor, type=TWINS[tensor.type])

    changed = _changed(draw, case, change)
    with np.errstate(all="ignore"):
        return _with(changed, [(t, samples if t is None else _cast(t, samples)) for t, samples in _operands(changed)])


def _cast(tensor: T, samples: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(sample.astype(CARRIER[TensorType[tensor.type.upper()]]) for sample in samples)


def _changed(draw: Draw, case: Case, change: Callable[[T], T]) -> Case:
    """Return the case with one tensor changed, without its values."""
    tensors = [*case.inputs, *case.outputs, *case.intermediates]
    present = [i for i, t in enumerate(tensors) if t is not None]
    if present:
        place = draw.pick(present)
        tensor = tensors[place]
        assert tensor is not None
        tensors[place] = change(tensor)
    first, second = len(case.inputs), len(case.inputs) + len(case.outputs)
    made = tuple(t for t in tensors[first:second] if t is not None)
    between = tuple(t for t in tensors[second:] if t is not None)
    return replace(case, inputs=tuple(tensors[:first]), outputs=made, intermediates=between)


def fewer_or_more_operands(draw: Draw, case: Case) -> Case:
    """Return the case with an input left out, cut off, duplicated, or constant instead of fed."""
    operands = _operands(case)
    if not operands:
        return case
    place, kind = draw.int(0, len(operands) - 1), draw.int(0, 3)
    tensor, samples = operands[place]
    if kind == 0:
        operands[place] = (None, ())
    elif kind == 1:
        operands = operands[:-1]
    elif kind == 2:
        operands.append(operands[place])
    elif tensor is not None and samples:
        operands[place] = (replace(tensor, value=samples[0]), ())
    return _with(case, operands)


CHANGES: tuple[Callable[[Draw, Case], Case], ...] = (
    reshaped_input,
    reshaped_input,
    reshaped_input,
    reshaped_output,
    values_out_of_range,
    values_out_of_range,
    other_option,
    other_option,
    other_quantization,
    other_type,
    fewer_or_more_operands,
)
