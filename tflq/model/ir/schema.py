"""The `.tflite` wire format as data: the one loader of `schemas/tflite.json`.

The vocabulary (enums) and the codec both read it from here, so that each name or number is defined once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any


def data_text(name: str) -> str:
    """Return the text of a file of `schemas/`: in an installed wheel, or next to the package in a checkout."""
    packed = resources.files("tflq") / "schemas" / name
    if packed.is_file():
        return packed.read_text(encoding="utf-8")
    return (Path(__file__).resolve().parents[3] / "schemas" / name).read_text(encoding="utf-8")


@cache
def schema(name: str = "tflite") -> dict[str, Any]:
    """Return the parsed schema of a format: enums, unions and tables. Treat as read-only."""
    parsed: dict[str, Any] = json.loads(data_text(f"{name}.json"))
    return parsed


@cache
def enum(name: str) -> Mapping[str, int]:
    """Return the numbers of an enum by their names, such as enum("Padding")["VALID"]."""
    return MappingProxyType(schema()["enums"][name]["values"])


@cache
def enum_names(name: str) -> Mapping[int, str]:
    """Return the names of an enum by their numbers."""
    return MappingProxyType({number: label for label, number in enum(name).items()})


def in_words(table: str, field: str, value: object) -> object:
    """Return a field's number as the schema's word for it: in_words("Conv2DOptions", "padding", 0) is "SAME".

    Other values are returned unchanged: fields that are not enums, numbers without a name, unknown tables.
    """
    kind = schema()["tables"].get(table, {}).get(field, (0, ""))[1]
    if isinstance(kind, str) and kind in schema()["enums"] and isinstance(value, int) and not isinstance(value, bool):
        return enum_names(kind).get(int(value), value)
    return value
