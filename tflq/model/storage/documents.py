"""JSON and YAML from others: read into plain values, with bounds on size, depth and kind."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from typing import Any

from tflq.errors import FileAccessError, InputError
from tflq.model.storage.output import PathLike
from tflq.model.storage.reading import open_file

#: Limits on the bytes of a document, its levels of lists and mappings, and its values, counting YAML's repetitions.
BYTES, DEPTH, VALUES = 16 << 20, 32, 1_000_000
#: Bytes of a YAML document, which takes much longer to read.
YAML_BYTES = 256 << 10
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def read_document(path: PathLike) -> Any:
    """Return the value of a file: JSON if its name ends in .json, else YAML.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: See `read_json` and `read_yaml`.
    """
    source = os.fspath(path)
    try:
        with open_file(source) as file:
            data = file.read(BYTES + 1)
    except OSError as error:
        raise error if isinstance(error, FileAccessError) else FileAccessError(source, str(error)) from error
    return read_json(data, source) if source.endswith(".json") else read_yaml(data, source)


def read_json(data: bytes, source: str) -> Any:
    """Return the value of a JSON document. `source` names it in errors.

    Raises:
        InputError: It is not JSON, or exceeds a bound.
    """
    check_size(len(data), BYTES, source)
    try:
        document = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # for broken text, numbers and depth
        raise InputError(f"is not readable JSON: {error}", name=source) from error
    return _check(document, source)


def read_yaml(data: bytes, source: str) -> Any:
    """Return the value of a YAML document; see `read_json`. Only JSON's types are accepted: no dates, no tags."""
    from tflq.model.storage.unique_yaml import load_unique

    check_size(len(data), YAML_BYTES, source)
    try:
        document = load_unique(data.decode())
    except Exception as error:  # its constructors raise many kinds: for dates, numbers, keys, depth
        words = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"is not readable YAML: {words}", name=source) from error
    return _check(document, source)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of a JSON document without duplicate names."""
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError(f"{_twice(name for name, _ in pairs)!r:.80} is there twice")
    return document


def _twice(names: Iterable[str]) -> str | None:
    """Return the first name that occurs again."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]


def check_size(size: int, most: int, source: str) -> None:
    """Refuse a document of more than `most` bytes."""
    if size > most:
        raise InputError("is too large for a document", name=source, expected=f"at most {most:,} bytes", got=size)


def _check(document: Any, source: str) -> Any:
    """Return the document, if it consists of text, numbers, lists and mappings of text within the bounds."""
    left, level = VALUES, [document]
    for _ in range(DEPTH):
        children = [_items(value, source) for value in level]
        left -= sum(map(len, children))
        if left < 0:
            raise InputError("holds too many values", name=source, expected=f"at most {VALUES:,}")
        level = [item for items in children for item in items]
        if not level:
            return document
    raise InputError("is nested too deeply", name=source, expected=f"at most {DEPTH} levels")


def _items(value: Any, source: str) -> Collection[Any]:
    """Return the items of a value; nothing for text and numbers."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise InputError("has a key that is not text", name=source)
        return value.values()
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise InputError(f"holds a {type(value).__name__}, which is neither text nor number", name=source)
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        raise InputError("holds a whole number beyond 64 bits", name=source)
    return ()
