"""What results show of themselves in Python: three lines as `repr`, and as HTML in a notebook.

How a result is told is formatting, and belongs to `tflq/report/<verb>/told.py`. That is looked up by the verb's name
when a result is first shown, so that the rooms in which results are made know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tflq.interrupts import import_whole

T = TypeVar("T")


def told(verb: str) -> Callable[[type[T]], type[T]]:
    """Let a class of results tell itself as `tflq/report/<verb>/told.py` says in its `CARDS`."""

    def telling(cls: type[T]) -> type[T]:
        cls.__repr__ = lambda self: _text(verb, self)  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: str(_card(verb, self).html)  # type: ignore[attr-defined]
        return cls

    return telling


def _text(verb: str, result: object) -> str:
    """Return three lines; of a value whose fields hold what they must not, its class: errors name such values, too."""
    try:
        return str(_card(verb, result).text)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return f"<{type(result).__name__} that cannot be told>"


def _card(verb: str, result: object) -> Any:
    return import_whole(f"tflq.report.{verb}.told").CARDS[type(result).__name__](result)
