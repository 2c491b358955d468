"""Bytes of the arrays that an object holds, without those of the model's file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np


class Footprint:
    """Bytes of the arrays that were found so far, each counted once."""

    def __init__(self) -> None:
        self.bytes = 0
        self._seen: set[int] = set()
        self._held: list[Any] = []  # so that no number in `_seen` is reused by another object

    def add(self, *values: Any) -> None:
        """Count the arrays that are reachable from `values` by fields, elements and closures."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, np.ndarray):
                while isinstance(value.base, np.ndarray):  # then its base is None, or another owner: the file
                    value = value.base
            elif not isinstance(value, (tuple, list, Mapping, FunctionType, partial)) and not _fields(value.__class__):
                continue
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._held.append(value)
            if isinstance(value, np.ndarray):
                self.bytes += value.nbytes if value.base is None else 0
            else:
                waiting.extend(_parts(value))


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """Return the names of a data class's fields; None for other types."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (tuple, list)):
        return value
    return [getattr(value, name) for name in _fields(value.__class__) or ()]
