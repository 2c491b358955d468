"""Baselines: known issues that are accepted for a time, so that only new ones fail.

docs/how-to/continuous-integration.md describes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date

from tflq.errors import InputError
from tflq.model.storage.documents import read_document
from tflq.model.storage.output import PathLike, write_file

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
