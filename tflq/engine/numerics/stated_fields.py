"""Fields of points of a grammar, as files of profiles state them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tflq.errors import UnknownNameError

P = TypeVar("P")


def check_fields(stated: Mapping[str, Any], fields: Mapping[str, Sequence[Any]], owner: str) -> None:
    """Refuse fields and values that `fields`, the values of each field, does not have; True is no 1.

    Raises:
        UnknownNameError: A field or a value does not exist; the message names `owner`, such as "an average".
    """
    for field, value in stated.items():
        if field not in fields:
            raise UnknownNameError(f"field of {owner}", str(field), tuple(fields))
        if not any(type(known) is type(value) and known == value for known in fields[field]):
            raise UnknownNameError(f"value of {field}", str(value)[:80], tuple(map(str, fields[field])))


def reader(
    point: Callable[..., P], fields: Mapping[str, Sequence[object]], what: str
) -> Callable[[Mapping[str, Any]], P]:
    """Return the function that reads a point from what a file states of it; the other fields have their defaults.

    It raises UnknownNameError if a field or a value does not exist.
    """

    def read(stated: Mapping[str, Any]) -> P:
        check_fields(stated, fields, what)
        return point(**stated)

    return read
