"""Parts of an operator's prepared data, wherever they lie, and the whole with one of them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tflq.kernels.unary import Tabulated, tabulated

T = TypeVar("T")
#: Makes the whole of a changed part.
Rebuild = Callable[[Any], Any]


def parts_of(data: Any, kind: type[T]) -> Iterator[tuple[str, T, Rebuild]]:
    """Every part of that type, where it lies (field names joined by dots), and what makes the whole of another one."""
    for place, value, rebuild in _walk("", data, lambda changed: changed):
        if isinstance(value, kind):
            yield place, value, rebuild


def records_of(data: Any) -> Iterator[tuple[str, Any, Rebuild]]:
    """The same for every dataclass, the whole data among them."""
    for place, value, rebuild in _walk("", data, lambda changed: changed):
        if is_dataclass(value):
            yield place, value, rebuild


def _walk(place: str, value: Any, rebuild: Rebuild) -> Iterator[tuple[str, Any, Rebuild]]:
    yield place, value, rebuild
    if isinstance(value, Tabulated):
        yield from _walk(_joined(place, "data"), value.data, lambda data: rebuild(tabulated(data, value.make)))
        yield from _walk(_joined(place, "table"), value.table, lambda table: rebuild(replace(value, table=table)))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.init:

                def in_field(changed: Any, name: str = field.name) -> Any:
                    return rebuild(replace(value, **{name: changed}))

                yield from _walk(_joined(place, field.name), getattr(value, field.name), in_field)
    elif type(value) is tuple:
        for position, item in enumerate(value):

            def in_tuple(changed: Any, at: int = position) -> Any:
                return rebuild((*value[:at], changed, *value[at + 1 :]))

            yield from _walk(f"{place}[{position}]", item, in_tuple)


def _joined(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field
