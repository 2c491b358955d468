"""Models with other values in them: of the right types and odd, or of any type at all."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tflq.model.flatbuf.layout import Field, FieldKind, layout
from tflq.model.ir import Buffer, Model, Record, TensorType, UnknownField

INTS = (
    0,
    -1,
    1,
    127,
    128,
    255,
    256,
    32768,
    65536,
    2**31 - 1,
    2**31,
    -(2**31),
    -(2**31) - 1,
    2**32,
    2**63,
    -(2**63),
    2**64,
)
FLOATS = (0.0, -0.0, 0.5, 2.0**-149, 2.0**127, 1e39, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "x", "a\0b", "Ω" * 9, "\udcff", "\ud800", "x" * 3000)
SIZES = (0, 0, 1, 1, 2, 17)

Chance = random.Random


def _ints(chance: Chance) -> tuple[int, ...]:
    return tuple(chance.choice(INTS[:11]) for _ in range(chance.choice(SIZES)))


def _array(dtype: Any) -> Callable[[Chance], Any]:
    def made(chance: Chance) -> Any:
        """Any bits, so NaN of every kind too."""
        width = np.dtype(dtype).itemsize
        array = np.frombuffer(chance.randbytes(width * chance.choice(SIZES)), dtype)
        return array[::-1] if chance.random() < 0.3 else array

    return made


def _pairs(chance: Chance) -> tuple[tuple[str, int], ...]:
    return tuple((chance.choice(TEXTS), chance.choice(INTS)) for _ in range(chance.choice(SIZES)))


def _unknown(chance: Chance) -> tuple[UnknownField, ...]:
    table, number = (
        chance.choice(("Model", "Tensor", "Buffer")),
        chance.choice((-1, 0, 5, 60, 200, 32765, 32766, 1 << 30)),
    )
    return (UnknownField(table, number, chance.randbytes(8), chance.random() < 0.8),)


#: By the annotation of a field: values that it may have.
_BY_TYPE: Mapping[str, Callable[[Chance], Any]] = {
    "int": lambda chance: chance.choice(INTS),
    "bool": lambda chance: chance.random() < 0.5,
    "str": lambda chance: chance.choice(TEXTS),
    "TensorType | int": lambda chance: chance.choice((*TensorType, 77, -1, 128)),
    "tuple[int, ...]": _ints,
    "tuple[bool, ...]": lambda chance: tuple(chance.random() < 0.5 for _ in range(chance.choice(SIZES))),
    "tuple[tuple[str, int], ...]": _pairs,
    "tuple[tuple[str | None, int], ...]": _pairs,
    "tuple[UnknownField, ...]": _unknown,
    "NDArray[np.float32]": _array(np.float32),
    "NDArray[np.int64]": _array(np.int64),
    "NDArray[np.uint8]": _array(np.uint8),
    "memoryview | bytes": lambda chance: chance.randbytes(chance.choice(SIZES)),
}


def with_odd_values(model: Model, seed: int) -> Model:
    """The model with up to four values changed to others of their types, or lists made shorter or longer."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 2, 4))):
        model = _odd(model, "", chance)
    return model


def _odd(value: Any, annotation: str, chance: Chance) -> Any:
    plain = annotation.removesuffix(" | None")
    if plain != annotation and chance.random() < 0.1:
        return None
    if plain in _BY_TYPE:
        return _BY_TYPE[plain](chance)
    if isinstance(value, Record):
        return _odd_record(value, chance)
    if dataclasses.is_dataclass(value):
        field = chance.choice(dataclasses.fields(value))
        return dataclasses.replace(value, **{field.name: _odd(getattr(value, field.name), str(field.type), chance)})  # type: ignore[type-var]
    if isinstance(value, tuple) and value:
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return value[:at] + value[at:][: chance.choice((0, 1))] * chance.choice((0, 2, 40)) + value[at + 1 :]
        return (*value[:at], _odd(value[at], "", chance), *value[at + 1 :])
    return value


def _odd_record(record: Record, chance: Chance) -> Record:
    fields = layout(record.table).fields
    if not fields:
        return record
    field = chance.choice(list(fields.values()))
    return Record(record.table, {**record.fields, field.name: _field_value(record.fields[field.name], field, chance)})


def _field_value(value: Any, field: Field, chance: Chance) -> Any:
    if field.kind is FieldKind.SCALAR:
        kind = type(field.default)
        return chance.random() < 0.5 if kind is bool else chance.choice(FLOATS if kind is float else INTS)
    if chance.random() < 0.1:
        return None
    if field.kind is FieldKind.STRING:
        return chance.choice(TEXTS)
    if field.kind is FieldKind.NUMBERS and field.number is not None and field.number.name != "bool":
        return _array(field.number.dtype)(chance)
    return _odd(value, "", chance)


#: What may stand anywhere by mistake.
ANYTHING: tuple[Any, ...] = (
    *INTS,
    *FLOATS,
    *TEXTS,
    None,
    True,
    b"",
    b"abc",
    (),
    (1,),
    ((1, 2), (3, 4)),
    [1, 2],
    (None,),
    ("a",),
    (("a", 1),),
    ((None, 1),),
    {1: 2},
    object(),
    TensorType.INT8,
    Buffer(),
    Record("Buffer"),
    Record("AddOptions"),
    Record("None"),
    np.zeros(0, np.float32),
    np.full(2, 0.1),
    np.zeros((2, 2), np.uint8),
    np.zeros((2, 2), np.float32),
    np.array(5),
    np.array([1, 2], ">i4"),
    np.array(["x"]),
    np.array([None]),
    np.zeros(4, np.uint8)[::2],
    UnknownField("Model", 40, b"\1" * 8, True),
    (UnknownField("Model", 2, b"\1" * 8, True),),
)


def with_anything(model: Model, seed: int) -> Any:
    """The model with one or two values changed to anything, of whatever type."""
    chance = random.Random(seed)
    changed: Any = model
    for _ in range(chance.choice((1, 1, 2))):
        changed = _anything(changed, chance)
    return changed


def _anything(value: Any, chance: Chance) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and chance.random() < 0.95:
        field = chance.choice(dataclasses.fields(value))
        return dataclasses.replace(value, **{field.name: _anything(getattr(value, field.name), chance)})
    if isinstance(value, tuple) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        return (*value[:at], _anything(value[at], chance), *value[at + 1 :])
    if isinstance(value, Mapping) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: _anything(value[key], chance)}
    return chance.choice(ANYTHING)
