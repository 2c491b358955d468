"""A test of many values as one case, which names all values that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

Test = Callable[..., None]

#: Longest part of a value's name, and of what is quoted of one failure.
_NAME, _QUOTED = 60, 400


def each(
    names: str | Sequence[str], values: Iterable[Any], ids: Iterable[str] | Callable[[Any], str] | None = None
) -> Callable[[Test], Test]:
    """Call a test for each value, within one case; takes what `pytest.mark.parametrize` takes, except marks.

    Every value is tried. If some fail, the case fails, names them all, and has the traceback of the first. The test's
    fixtures are made once for all values, so a test that needs fresh ones wants `pytest.mark.parametrize`.
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    rows = [value if isinstance(value, ParameterSet) else _set(words, value) for value in values]
    if any(row.marks for row in rows):
        raise ValueError("values with marks are cases of their own: use pytest.mark.parametrize")
    labels = [_label(row, ids) for row in rows] if ids is None or callable(ids) else list(ids)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def over_all(**fixtures: Any) -> None:
            failed: dict[str, BaseException] = {}
            skipped: list[pytest.skip.Exception] = []
            for label, row in zip(labels, rows, strict=True):
                try:
                    test(**dict(zip(words, row.values, strict=True)), **fixtures)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
                except (Exception, pytest.fail.Exception) as error:
                    failed[label] = error
            if failed:
                raise AssertionError(_summary(failed, len(rows))) from next(iter(failed.values()))
            if skipped and len(skipped) == len(rows):
                raise skipped[0]

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in words]
        over_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return over_all

    return decorate


def _set(words: list[str], value: Any) -> ParameterSet:
    return pytest.param(value) if len(words) == 1 else pytest.param(*value)


def _label(row: ParameterSet, name: Callable[[Any], str] | None) -> str:
    """Return a row's own name, or one made of its values."""
    if isinstance(row.id, str):
        return row.id
    return "-".join((name or _name)(value) for value in row.values)


def _name(value: Any) -> str:
    text = str(getattr(value, "__name__", value)).partition("\n")[0]
    return text if len(text) <= _NAME else f"{text[:_NAME]}..."


def _summary(failed: dict[str, BaseException], total: int) -> str:
    lines = [f"  {label}: {type(error).__name__}: {str(error)[:_QUOTED]}" for label, error in failed.items()]
    return "\n".join([f"{len(failed)} of {total} fail: {', '.join(failed)}", *lines])
