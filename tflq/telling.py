"""Displays of results in Python: three lines as `repr`, and HTML in a notebook.

Formatting belongs to `tflq/report/<verb>/told.py`, which is looked up by the verb's name when a result is first
displayed. So the rooms that compute results do not import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tflq.interrupts import import_whole

T = TypeVar("T")


def told(verb: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator that displays a class of results by the `CARDS` of `tflq/report/<verb>/told.py`."""

    def telling(cls: type[T]) -> type[T]:
        cls.__repr__ = lambda self: _text(verb, self)  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: str(_card(verb, self).html)  # type: ignore[attr-defined]
        return cls

    return telling


def _text(verb: str, result: object) -> str:
    """Return three lines, or only the class of a value with invalid fields: errors name such values, too."""
    try:
        return str(_card(verb, result).text)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return f"<{type(result).__name__} that cannot be displayed>"


def _card(verb: str, result: object) -> Any:
    return import_whole(f"tflq.report.{verb}.told").CARDS[type(result).__name__](result)
