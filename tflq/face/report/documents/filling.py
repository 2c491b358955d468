"""Documents filled by their types: a key holds the attribute of its name, in the form of its annotation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

T = TypeVar("T")


class Of(str):
    """In an annotation: the attribute that the key is filled from, where it has another name.

    It may be an attribute of an attribute, as "case.id". SELF is the object itself; NONE means no attribute.
    """

    __slots__ = ()


class IfAny(Of):
    """An attribute; the key is left out if it is empty."""

    __slots__ = ()


SELF, NONE = Of("."), Of("")
_OPTIONAL = object()


class _Optional:
    """Takes the place of NotRequired, which Python 3.10 lacks, and which an annotation in quotes would hide."""

    def __class_getitem__(cls, item: Any) -> Any:
        return Annotated[item, _OPTIONAL]


@dataclass(frozen=True, slots=True)
class _Key:
    """How a key is filled: what gets its value from an object, what gives the value its form, and if it may lack."""

    get: Callable[[Any], Any]
    convert: Callable[[Any], Any]
    is_optional: bool
    is_if_any: bool


def filled(kind: type[T], source: object, /, **given: Any) -> T:
    """Return a document of a type whose keys hold the attributes of `source`.

    Documents inside are filled likewise, sequences become lists, members of enumerations their values; an empty text
    is null where null is allowed. A key that can hold one text only, as `schema` does, holds that. A key that is not
    required is left out if there is no such attribute.

    Args:
        kind: A TypedDict. A key that its annotation calls by another attribute has `Of("attribute")`.
        source: The object with the attributes.
        given: Values in place of attributes. Mappings for documents are in their final form.

    Raises:
        AttributeError: An attribute is missing.
    """
    document: dict[str, Any] = {}
    for name, key in _plan(kind).items():  # type: ignore[arg-type]
        if name in given:
            document[name] = key.convert(given[name])
            continue
        try:
            value = key.get(source)
        except AttributeError:
            if key.is_optional:
                continue
            raise
        if value or not key.is_if_any:
            document[name] = key.convert(value)
    return document  # type: ignore[return-value]


@cache
def _plan(kind: type) -> Mapping[str, _Key]:
    """Return how each key of a document is filled."""
    hints = get_type_hints(kind, localns={"NotRequired": _Optional}, include_extras=True)
    optional: Collection[str] = kind.__optional_keys__  # type: ignore[attr-defined]
    return {name: _key(name, hint, is_optional=name in optional) for name, hint in hints.items()}


def _key(name: str, hint: Any, *, is_optional: bool) -> _Key:
    words = hint.__metadata__ if get_origin(hint) is Annotated else ()
    attribute = next((word for word in words if isinstance(word, Of)), Of(name))
    texts = get_args(hint) if get_origin(hint) is Literal else ()
    get: Callable[[Any], Any] = attrgetter(attribute)
    if len(texts) == 1 or attribute == SELF:
        get = (lambda source: source) if attribute == SELF else (lambda _source: texts[0])
    return _Key(get, _conversion(hint), is_optional or _OPTIONAL in words, isinstance(attribute, IfAny))


def _conversion(hint: Any) -> Callable[[Any], Any]:
    """Return the function that gives a value the form of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _conversion(parts[0])
    if origin in (Union, UnionType) and type(None) in parts:
        others = [part for part in parts if part is not type(None)]
        inner = _conversion(others[0]) if len(others) == 1 else _plain
        return lambda value: None if value is None or value == "" else inner(value)
    if origin is list:
        each = _conversion(parts[0])
        return lambda values: [each(value) for value in values]
    if origin is dict:
        each = _conversion(parts[1])
        return lambda values: {key: each(value) for key, value in dict(values).items()}
    if is_typeddict(hint):
        return lambda value: dict(value) if isinstance(value, Mapping) else filled(hint, value)
    return _plain


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else list(value) if isinstance(value, tuple) else value
