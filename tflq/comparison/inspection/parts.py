"""Parts of an operator's prepared data, found by type at any depth, and the whole with one of them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

from tflq.engine.kernels.families.unary import Tabulated, tabulate

T = TypeVar("T")
#: A function from a changed part to the whole.
Rebuild = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Part(Generic[T]):
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


def parts_of(data: Any, kind: type[T]) -> Iterator[Part[T]]:
    """Return every part of that type, outer ones before inner ones."""
    return (part for part in _walk(Part("", "", data, lambda changed: changed)) if isinstance(part.value, kind))


def _walk(part: Part[Any]) -> Iterator[Part[Any]]:
    yield part
    value, place, rebuild = part.value, part.place, part.rebuild
    if isinstance(value, Tabulated):
        yield from _walk(Part(place, "data", value.data, lambda data: rebuild(tabulate(data, value.make))))
        yield from _walk(Part(place, "table", value.table, lambda table: rebuild(replace(value, table=table))))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init:

                def in_field(changed: Any, name: str = field.name) -> Any:
                    return rebuild(replace(value, **{name: changed}))

                yield from _walk(Part(place, field.name, getattr(value, field.name), in_field))
    elif type(value) is tuple:
        for position, item in enumerate(value):

            def in_tuple(changed: Any, at: int = position) -> Any:
                return rebuild((*value[:at], changed, *value[at + 1 :]))

            yield from _walk(_item(part, position, item, in_tuple))
    elif isinstance(value, dict):
        for key, item in value.items():

            def in_dict(changed: Any, at: Any = key) -> Any:
                return rebuild({**value, at: changed})

            yield from _walk(_item(part, key, item, in_dict))


def _item(part: Part[Any], key: Any, item: Any, rebuild: Rebuild) -> Part[Any]:
    """Return an item of a tuple or dictionary, which belongs to the same owner."""
    return Part(part.owner, f"{part.name}[{key}]", item, rebuild)
