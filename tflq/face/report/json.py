"""Documents as JSON text, and errors as documents. No timestamps: equal findings, equal bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tflq.errors import TflqError
from tflq.face.report.documents.shared import ErrorDocument
from tflq.texts import valid


def dumps(document: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return the document as text that UTF-8 can hold: sorted keys, two spaces, NaN and Infinity as strings.

    What is not printable is escaped as JSON does it, also what JSON would allow as it is.
    """
    text = json.dumps(json_value(document), indent=2, sort_keys=True, allow_nan=False, ensure_ascii=ascii_only)
    return "\n".join(line if line.isprintable() else "".join(map(_escape, line)) for line in text.split("\n"))


def _escape(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def error_document(error: BaseException, exit_code: int) -> ErrorDocument:
    """Return an error: `schemas/error.schema.json`. The facts are the fields that its class documents."""
    facts = vars(error) if isinstance(error, TflqError) else {}
    known = {name: value for name, value in facts.items() if not name.startswith("_")}
    return {
        "schema": "tflq/error/1",
        "kind": type(error).__name__,
        "message": str(error),
        "exit_code": exit_code,
        "facts": {name: _fact(value) for name, value in known.items()},
    }


def _fact(value: Any) -> Any:
    plain = json_value(value)
    return plain if isinstance(plain, (bool, int, float, str, list, type(None))) else str(value)


def json_value(value: Any) -> Any:
    """Return the value in terms of JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {valid(str(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, str):
        return valid(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
