"""Classes of results that a console and a notebook display by a report.

Results are made in rooms that know nothing of formatting, so a class names the builder of its report, which is imported
when a result is first displayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tflq.interrupts import import_whole

T = TypeVar("T")


def display_by(builder: str) -> Callable[[type[T]], type[T]]:
    """Give a class `__repr__` (three lines) and `_repr_html_` (a card for notebooks).

    Args:
        builder: "module:function" below `tflq.face.report.verbs`; the function returns the `Report` of a result.
    """

    def displaying(cls: type[T]) -> type[T]:
        cls.__repr__ = lambda self: _text(builder, self)  # type: ignore[method-assign]
        cls._repr_html_ = lambda self: _render("card_html", builder, self)  # type: ignore[attr-defined]
        return cls

    return displaying


def _text(builder: str, result: object) -> str:
    """Return the three lines of a result, or the error of its report: `repr` is called while errors are written."""
    try:
        return _render("card_text", builder, result)
    except Exception as error:
        return f"<{type(result).__name__}, whose report failed: {type(error).__name__}: {error}>"


def _render(renderer: str, builder: str, result: object) -> str:
    module, _, function = builder.partition(":")
    report: Any = getattr(import_whole(f"tflq.face.report.verbs.{module}"), function)(result)
    return str(getattr(import_whole("tflq.face.report.render.card"), renderer)(report))
