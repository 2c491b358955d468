"""Structural equality of models: the same values, whatever bytes and objects hold them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tflq.model.ir import UnknownField


def differences(a: Any, b: Any, path: str = "model") -> Iterator[str]:
    """Paths at which two values differ, with both; nothing where they are equal."""
    if isinstance(a, (bytes, memoryview)) and isinstance(b, (bytes, memoryview)):
        if bytes(a) != bytes(b):
            yield f"{path}: bytes differ"
    elif type(a) is not type(b) and not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        yield f"{path}: {type(a).__name__} {a!r} != {type(b).__name__} {b!r}"
    elif isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            yield f"{path}: arrays differ"
    elif isinstance(a, UnknownField):
        if a != b:
            yield f"{path}: {a} != {b}"
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            yield from differences(getattr(a, field.name), getattr(b, field.name), f"{path}.{field.name}")
    elif isinstance(a, Mapping):
        if list(a) != list(b):
            yield f"{path}: {list(a)} != {list(b)}"
            return
        for key in a:
            yield from differences(a[key], b[key], f"{path}[{key}]")
    elif isinstance(a, tuple):
        if len(a) != len(b):
            yield f"{path}: {len(a)} != {len(b)} entries"
            return
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from differences(x, y, f"{path}[{i}]")
    elif isinstance(a, float):
        if np.float64(a).tobytes() != np.float64(b).tobytes():
            yield f"{path}: {a!r} != {b!r}"
    elif a != b:
        yield f"{path}: {a!r} != {b!r}"


def walk(value: Any) -> int:
    """Touch everything in a value, every byte of its arrays too; how many values there are."""
    if isinstance(value, np.ndarray):
        return 1 + len(value.tobytes()) * 0
    if isinstance(value, (bytes, memoryview)):
        return 1 + len(bytes(value)) * 0
    if dataclasses.is_dataclass(value):
        return 1 + sum(walk(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return 1 + sum(walk(v) for v in value.values())
    if isinstance(value, tuple):
        return 1 + sum(map(walk, value))
    return 1 + len(repr(value)) * 0
