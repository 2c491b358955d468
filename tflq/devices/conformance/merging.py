"""Merge the verdicts on parts of a suite: documents of `conform run --json` and `conform check --json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tflq.comparison.inspection.difference import Difference, First
from tflq.devices.conformance.judging import Judged, Result, Verdicts
from tflq.devices.conformance.session import MostRefused, any_number
from tflq.devices.conformance.suite import LEVELS, Case
from tflq.errors import InputError
from tflq.model.storage.documents import read_json
from tflq.model.storage.reading import read_bytes

#: The schema of these documents.
SCHEMA = "tflq/conform/1"
#: The origin of a suite, in older documents.
_UNKNOWN = {"seed": None, "version": ""}
#: Missing parts that an error lists.
_LISTED = 5


def merge(paths: Sequence[str], most: MostRefused = any_number) -> Verdicts:
    """Return the verdicts on a whole suite from the documents of all its parts.

    Raises:
        FileAccessError: A document cannot be read.
        InputError: A document is malformed; or parts are missing, occur twice, or belong to different runs.
    """
    if not paths:
        raise InputError("number of results", expected="at least 1", got=0)
    parts = [read_verdicts(path) for path in paths]
    first = parts[0]
    for path, part in zip(paths, parts, strict=True):
        for name, ours, theirs in (
            ("target", first.target, part.target),
            ("profile", first.profile, part.profile),
            ("level", first.level, part.level),
            ("seed of the suite", first.seed, part.seed),
            ("version of the suite", first.version, part.version),
            ("number of parts", first.shard[1], part.shard[1]),
        ):
            if ours != theirs:
                raise InputError(f"is of another {name} than {paths[0]}", name=path, expected=ours, got=theirs)
    _check_parts(paths, parts)
    cases = sorted((one for part in parts for one in part.cases), key=lambda one: one.case.id)
    endings = tuple(ending for part in parts for ending in part.endings)
    limit = most([one.case for one in cases])
    left = sum(part.left for part in parts)
    found = (first.target, first.profile, first.level, tuple(cases), endings, limit, None, left, first.suite)
    return Verdicts(*found, seed=first.seed, version=first.version)


def _check_parts(paths: Sequence[str], parts: Sequence[Verdicts]) -> None:
    """Raise an InputError unless the parts are all of one suite, each once."""
    count = parts[0].shard[1]
    numbers = [part.shard[0] for part in parts]
    twice = [path for position, path in enumerate(paths) if numbers[position] in numbers[:position]]
    if twice:
        part = parts[paths.index(twice[0])]
        raise InputError("is a part that another document holds", name=twice[0], got=f"{part.shard[0]}/{count}")
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in numbers]
    if missing:
        listed = ", ".join(missing[:_LISTED]) + (f" and {len(missing) - _LISTED} more" if missing[_LISTED:] else "")
        raise InputError(f"give the documents of all {count} parts; missing: {listed}", name=paths[0])
    marks = {part.suite for part in parts}
    if len(marks) not in (1, len(parts)):  # one suite that was run in parts, or parts that were made
        raise InputError("are of different suites", name=", ".join(paths))
    known: set[str] = set()
    for path, part in zip(paths, parts, strict=True):
        ids = [one.case.id for one in part.cases]
        again = [name for name in ids if name in known]
        if again or len(set(ids)) != len(ids):
            raise InputError("holds a case that occurs twice", name=path, got=(again or ids)[0])
        known |= set(ids)


def read_verdicts(path: str) -> Verdicts:
    """Return the verdicts of a document, without their evidence of joint causes.

    Raises:
        FileAccessError: The document cannot be read.
        InputError: It is malformed, or another document.
    """
    document = read_json(read_bytes(path), path)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError("is no document of tflq conform run --json", name=path, expected=SCHEMA)
    try:
        return _verdicts(document)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"is a malformed document: {type(error).__name__}: {error}", name=path) from error


def _verdicts(document: Mapping[str, Any]) -> Verdicts:
    texts = [_text(document[name]) for name in ("target", "profile", "level", "suite")]
    target, profile, level, suite = texts
    number, count = (_number(n) for n in document["shard"])
    if level not in LEVELS or not 1 <= number <= count:
        raise ValueError(f"level {level}, shard {number}/{count}")
    cases = tuple(map(_judge, document["cases"]))
    endings, made = tuple(map(_text, document["endings"])), document.get("made", _UNKNOWN)
    seed = None if made["seed"] is None else _number(made["seed"])
    found = (target, profile, level, cases, endings, None, None, _number(document["left"]), suite, (number, count))
    return Verdicts(*found, seed=seed, version=_text(made["version"]))


def _judge(row: Mapping[str, Any]) -> Judged:
    name, op, types, level, aim = (_text(row[key]) for key in ("id", "op", "types", "level", "aim"))
    tells, causes = (tuple(map(_text, row[name])) for name in ("tells", "causes"))
    expected: tuple[tuple[str, ...], ...] = () if row["must_be_refused"] else ((),)
    case = Case(name, op, types, level, aim, tells, "", (), expected)
    return Judged(
        case,
        Result(row["result"]),
        (row["reason"] and _text(row["reason"])) or "",
        None if row["sample"] is None else _number(row["sample"]),
        None if row["difference"] is None else _difference(row["difference"]),
        causes,
        is_explained=row["is_explained"] is True,
        fault=(row["fault"] and _text(row["fault"])) or "",
        mark=_text(row["mark"]),
        digest=_text(row.get("digest") or ""),
        outputs=_text(row.get("outputs") or ""),
        size=_number(row.get("size") or 0),
        place=_text(row.get("place") or ""),
    )


def _difference(row: Mapping[str, Any]) -> Difference:
    first = row["first"]
    place = first and First(
        _number(first["sample"]), tuple(map(_number, first["index"])), first["expected"], first["got"]
    )
    elements, differing, largest = (_number(row[name]) for name in ("elements", "differing", "largest"))
    return Difference(elements, differing, _text(row["unit"]), largest, first=place or None)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r:.40}")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"expected a number, got {value!r:.40}")
    return value
