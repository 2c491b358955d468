"""JSON and YAML from others, with bounds on size, depth and count.

YAML without duplicate keys: PyYAML itself keeps the last of two equal keys.

Baselines: known issues that are accepted for a time, so that only new ones fail.
docs/how-to/continuous-integration.md describes the file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

import yaml

from tflq.errors import FileAccessError, InputError
from tflq.model.storage.kinds import open_file
from tflq.model.storage.output import PathLike, write_file

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


class _Unique(yaml.SafeLoader):
    """The safe loader, with a check of keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raise a ConstructorError if a key is duplicate."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        again = next((key for key, count in Counter(keys).items() if count > 1), None)
        if again is not None:
            raise yaml.constructor.ConstructorError(None, None, f"{again!r:.80} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def load_unique(text: str) -> Any:
    """Return the value of a document; raise as `yaml.safe_load`."""
    return yaml.load(text, _Unique)


SCHEMA, EARLIER = "tflq/baseline/2", ("tflq/baseline/1",)


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted issue, the day `expires`, which is the last, and the reason."""

    key: str
    reason: str
    expires: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """Accepted complaints by key, and the numbers of compared elements, by name, when it was written."""

    accepted: Mapping[str, Accepted]
    compared: Mapping[str, int]


def read_baseline(path: PathLike, today: date) -> Baseline:
    """Read a baseline; expired entries are dropped.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: It is not a baseline, or is one of an earlier version, or an entry lacks its reason or day.
    """
    document = read_document(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema in EARLIER:
        advice = "its keys accept more than was recorded: write it again with --accept-until DAY --reason TEXT"
        raise InputError(f"is a baseline of an earlier version; {advice}", name=str(path), expected=SCHEMA, got=schema)
    if not isinstance(document, dict) or schema != SCHEMA or not isinstance(document.get("accepted"), list):
        raise InputError("is not a baseline", name=str(path), expected=SCHEMA)
    entries = [_entry(row, str(path)) for row in document["accepted"]]
    keys = {entry.key for entry in entries}
    if len(keys) != len(entries):
        raise InputError("accepts the same thing twice", name=str(path))
    accepted = {e.key: e for e in entries if date.fromisoformat(e.expires) >= today}
    return Baseline(accepted, _compare(document.get("compared"), str(path)))


def _compare(value: object, path: str) -> dict[str, int]:
    if not isinstance(value, Mapping) or not all(type(n) is int and n > 0 for n in value.values()):
        got = f"{value!r:.80}"
        raise InputError("does not list what was compared", name=path, expected="compared: numbers by name", got=got)
    return dict(value)


def _entry(row: object, path: str) -> Accepted:
    names = ("key", "reason", "expires")
    fits = isinstance(row, Mapping) and set(row) == set(names) and all(isinstance(v, str) and v for v in row.values())
    if not isinstance(row, Mapping) or not fits:
        raise InputError("holds a malformed entry", name=path, expected=", ".join(names), got=f"{row!r:.80}")
    try:
        date.fromisoformat(row["expires"])
    except ValueError as error:
        raise InputError(f"{row['key']}: {error}", name=path, expected="a day such as 2027-03-31") from error
    return Accepted(row["key"], row["reason"], row["expires"])


def write_baseline(
    path: PathLike, keys: Iterable[str], reason: str, expires: date, compared: Mapping[str, int]
) -> None:
    """Write a baseline that accepts all of these keys; `compared` are the numbers of compared elements, by name.

    Raises:
        FileAccessError: The path cannot be written.
    """
    accepted = [asdict(Accepted(key, reason, expires.isoformat())) for key in sorted(set(keys))]
    document = {"schema": SCHEMA, "accepted": accepted, "compared": dict(sorted(compared.items()))}
    write_file(path, json.dumps(document, indent=1).encode() + b"\n")
