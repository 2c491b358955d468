"""Structural equality of operators' prepared data: equal values under the same function give equal bits.

Only certain equality counts. Unknown objects are equal only to themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from tflq.engine.kernels.families.unary import Tabulated
from tflq.engine.kernels.kernel import Prepared


def same_operator(first: Prepared, second: Prepared) -> bool:
    """Return whether both operators evaluate the same function of the same constants."""
    return first.shapes == second.shapes and same(first.eval, second.eval) and same(first.data, second.data)


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
