"""Baselines: what is known and accepted for a time, so that only what is new fails.

docs/how-to/continuous-integration.md describes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date

from tflq.errors import InputError
from tflq.storage.documents import read_document
from tflq.storage.output import PathLike, write_file

SCHEMA = "tflq/baseline/1"


@dataclass(frozen=True, slots=True)
class Accepted:
    """Something that may be so until the day `expires`, which is the last, and why."""

    key: str
    reason: str
    expires: str


def read_baseline(path: PathLike, today: date) -> dict[str, Accepted]:
    """What a baseline accepts on a day, by key.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: It is no baseline, or an entry lacks its reason or day.
    """
    document = read_document(path)
    if (
        not isinstance(document, dict)
        or document.get("schema") != SCHEMA
        or not isinstance(document.get("accepted"), list)
    ):
        raise InputError("is no baseline", name=str(path), expected=SCHEMA)
    entries = [_entry(row, str(path)) for row in document["accepted"]]
    return {e.key: e for e in entries if date.fromisoformat(e.expires) >= today}


def _entry(row: object, path: str) -> Accepted:
    names = ("key", "reason", "expires")
    fits = isinstance(row, Mapping) and set(row) == set(names) and all(isinstance(v, str) and v for v in row.values())
    if not isinstance(row, Mapping) or not fits:
        raise InputError("holds an entry that is none", name=path, expected=", ".join(names), got=f"{row!r:.80}")
    try:
        date.fromisoformat(row["expires"])
    except ValueError as error:
        raise InputError(f"{row['key']}: {error}", name=path, expected="a day such as 2027-03-31") from error
    return Accepted(row["key"], row["reason"], row["expires"])


def write_baseline(path: PathLike, keys: Iterable[str], reason: str, expires: date) -> None:
    """Write a baseline that accepts all of these.

    Raises:
        FileAccessError: The path cannot be written.
    """
    accepted = [asdict(Accepted(key, reason, expires.isoformat())) for key in sorted(set(keys))]
    write_file(path, json.dumps({"schema": SCHEMA, "accepted": accepted}, indent=1).encode() + b"\n")
