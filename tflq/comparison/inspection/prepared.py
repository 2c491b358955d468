"""Parts of an operator's prepared data, by type and by name, and their equality.

An operator's prepared constants, found by walking its kernel's data: output stages, zero points, clamps.

Structural equality of operators' prepared data: equal values under the same function give equal bits.

Only certain equality counts. Unknown objects are equal only to themselves.

Parts of an operator's prepared data, found by type at any depth, and the whole with one of them changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tflq.engine.kernels.families.unary import Tabulated, tabulate
from tflq.engine.kernels.kernel import Prepared
from tflq.engine.numerics.codes import Clamp, NumberClamp, ZeroPoint
from tflq.engine.numerics.multiplier import FixedMultiplier, Multiplier, ShortMultiplier
from tflq.engine.numerics.stages import OutputPipeline, OutputStage


@dataclass(frozen=True, slots=True)
class StageFacts:
    """An output stage of class `kind` in `field`. Values have one entry if all channels agree, else one per channel.

    `mantissa` (Q31) and `shift` (> 0 is left) are empty for stages that multiply in floating point. `zero_point`, `low`
    and `high` (LSB of output) are None if the stage is separate.
    """

    field: str
    kind: str
    real: tuple[float, ...]
    mantissa: tuple[int, ...] = ()
    shift: tuple[int, ...] = ()
    zero_point: int | None = None
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Constants:
    """An operator's stages, and its scalar constants by field name."""

    stages: tuple[StageFacts, ...]
    scalars: tuple[tuple[str, int | float], ...]


def constants_of(prepared: Prepared) -> Constants:
    """Return the constants in a prepared operator's data. Arrays (weights, tables) are skipped."""
    constants = tuple(_walk("", "", prepared.data))
    return Constants(
        stages=tuple(value for _, value in constants if isinstance(value, StageFacts)),
        scalars=tuple((name, value) for name, value in constants if not isinstance(value, StageFacts)),
    )


def _walk(owner: str, name: str, value: Any) -> Iterator[tuple[str, StageFacts | int | float]]:
    """Yield stages and scalars below `value`, which is field `name` of the data at `owner`."""
    place = f"{owner}.{name}" if owner else name
    if isinstance(value, OutputPipeline):
        yield place, _stage(place, value.stage, value.zero_point, *value.clamp)
    elif isinstance(value, OutputStage):
        yield place, _stage(place, value)
    elif isinstance(value, (Clamp, NumberClamp, Multiplier, ShortMultiplier)):
        for part, number in named_parts(name, value):
            yield from _walk(owner, part, number)
    elif isinstance(value, (bool, np.bool_)):
        return
    elif isinstance(value, (int, float, np.integer, np.floating)):
        yield place, int(value) if isinstance(value, (int, np.integer)) else float(value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init:  # others are derived from these
                yield from _walk(place, field.name, getattr(value, field.name))
    elif isinstance(value, tuple):
        for position, item in enumerate(value):
            yield from _item(owner, f"{name}[{position}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _item(owner, f"{name}[{key}]", item)


def _item(owner: str, name: str, value: Any) -> Iterator[tuple[str, StageFacts | int | float]]:
    """Yield the parts of a tuple's item; plain numbers are sizes and positions, and skipped."""
    constant = isinstance(value, (ZeroPoint, Clamp, Multiplier, ShortMultiplier, FixedMultiplier))
    return (entry for entry in _walk(owner, name, value) if constant or isinstance(entry[1], StageFacts))


def named_parts(name: str, value: NamedTuple) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a clamp or multiplier in field `name`, by their names in reports.

    A field that is named after its type is not named: `clamp` gives `low` and `high`, `output` `output_shift`.
    """
    for part, number in zip(value._fields, value, strict=True):
        yield prefix_of(name) + part, number


def prefix_of(name: str) -> str:
    """Return the prefix of the names for numbers of a constant in field `name`."""
    return "" if name in _NAMED_AFTER_TYPE else f"{name}_"


_NAMED_AFTER_TYPE = ("clamp", "multiplier", "")


def _stage(
    name: str, stage: Any, zero_point: int | None = None, low: int | None = None, high: int | None = None
) -> StageFacts:
    return StageFacts(
        field=name,
        kind=type(stage).__name__,
        real=_entries(stage.real),
        mantissa=_entries(getattr(stage, "mantissa", ())),
        shift=_entries(getattr(stage, "shift", ())),
        zero_point=None if zero_point is None else int(zero_point),
        low=None if low is None else int(low),
        high=None if high is None else int(high),
    )


def _entries(values: Any) -> tuple[Any, ...]:
    entries = np.ravel(values)
    agree = entries.size > 0 and bool(np.all(entries == entries[0]))
    return tuple((entries[:1] if agree else entries).tolist())


def same_operator(first: Prepared, second: Prepared) -> bool:
    """Return whether both operators evaluate the same function of the same constants."""
    return first.shapes == second.shapes and same(first.eval, second.eval) and same(first.data, second.data)


class Kinds:
    """Prepared operators in the order in which they are asked for; equal ones are one kind, by number."""

    def __init__(self) -> None:
        self.known: list[Prepared] = []

    def of(self, prepared: Prepared) -> int:
        """Return the number of the first equal operator that was asked for."""
        for number, other in enumerate(self.known):
            if prepared is other or same_operator(prepared, other):
                return number
        self.known.append(prepared)
        return len(self.known) - 1


def same(first: Any, second: Any) -> bool:
    """Return whether pure code cannot distinguish two values, bit by bit.

    Fields that a dataclass derives from its others are skipped; for a table of codes, only the table counts.
    """
    if first is second:
        return True
    if type(first) is not type(second) or isinstance(first, type):
        return False
    if isinstance(first, np.ndarray):
        return _same_arrays(first, second)
    if isinstance(first, (float, np.generic)):
        return np.asarray(first).tobytes() == np.asarray(second).tobytes()
    if isinstance(first, (int, str, bytes, Enum, np.dtype, slice)):
        return bool(first == second)
    if isinstance(first, (tuple, list)):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Mapping):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, Tabulated):
        return same(first.table, second.table)
    if is_dataclass(first):
        return same_fields(first, second)
    return _same_functions(first, second)


def same_fields(first: Any, second: Any, without: tuple[str, ...] = ()) -> bool:
    """Return whether two dataclasses of one type agree in all fields from their construction, except `without`."""
    names = [f.name for f in fields(first) if f.init and f.name not in without]
    return all(same(getattr(first, name), getattr(second, name)) for name in names)


def _same_arrays(first: Any, second: Any) -> bool:
    if first.dtype != second.dtype or first.shape != second.shape or first.dtype.hasobject:
        return False
    return np.ascontiguousarray(first).tobytes() == np.ascontiguousarray(second).tobytes()


def _same_functions(first: Any, second: Any) -> bool:
    """Return whether callables of one type run the same code on the same bound values."""
    if isinstance(first, partial):
        return all(same(getattr(first, n), getattr(second, n)) for n in ("func", "args", "keywords"))
    if isinstance(first, MethodType):
        return same(first.__func__, second.__func__) and same(first.__self__, second.__self__)
    if not isinstance(first, FunctionType) or first.__globals__ is not second.__globals__:
        return False
    return (
        _same_code(first.__code__, second.__code__)
        and same(first.__defaults__, second.__defaults__)
        and same(first.__kwdefaults__, second.__kwdefaults__)
        and same(_cells(first), _cells(second))
    )


def _same_code(first: CodeType, second: CodeType) -> bool:
    return first is second or first == second


def _cells(function: FunctionType) -> tuple[Any, ...]:
    return tuple(cell.cell_contents for cell in function.__closure__ or ())


T = TypeVar("T")
#: A function from a changed part to the whole.
Rebuild = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPart(Generic[T]):
    """A value of prepared data: field `name` of the data at `owner`, both empty for the whole data.

    Places are field names joined by dots. `rebuild` makes the whole data with another value in this place.
    """

    owner: str
    name: str
    value: T
    rebuild: Rebuild

    @property
    def place(self) -> str:
        """The place of the part."""
        return f"{self.owner}.{self.name}" if self.owner else self.name


def parts_of(data: Any, kind: type[T]) -> Iterator[PreparedPart[T]]:
    """Return every part of that type, outer ones before inner ones."""
    return (
        part
        for part in _parts_walk(PreparedPart("", "", data, lambda changed: changed))
        if isinstance(part.value, kind)
    )


def _parts_walk(part: PreparedPart[Any]) -> Iterator[PreparedPart[Any]]:
    yield part
    value, place, rebuild = part.value, part.place, part.rebuild
    if isinstance(value, Tabulated):
        yield from _parts_walk(
            PreparedPart(place, "data", value.data, lambda data: rebuild(tabulate(data, value.make)))
        )
        yield from _parts_walk(
            PreparedPart(place, "table", value.table, lambda table: rebuild(replace(value, table=table)))
        )
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init:

                def in_field(changed: Any, name: str = field.name) -> Any:
                    return rebuild(replace(value, **{name: changed}))

                yield from _parts_walk(PreparedPart(place, field.name, getattr(value, field.name), in_field))
    elif type(value) is tuple:
        for position, item in enumerate(value):

            def in_tuple(changed: Any, at: int = position) -> Any:
                return rebuild((*value[:at], changed, *value[at + 1 :]))

            yield from _parts_walk(_parts_item(part, position, item, in_tuple))
    elif isinstance(value, dict):
        for key, item in value.items():

            def in_dict(changed: Any, at: Any = key) -> Any:
                return rebuild({**value, at: changed})

            yield from _parts_walk(_parts_item(part, key, item, in_dict))


def _parts_item(part: PreparedPart[Any], key: Any, item: Any, rebuild: Rebuild) -> PreparedPart[Any]:
    """Return an item of a tuple or dictionary, which belongs to the same owner."""
    return PreparedPart(part.owner, f"{part.name}[{key}]", item, rebuild)
