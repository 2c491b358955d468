"""The record of a folder of cases: the suite that they belong to, and the target that wrote the outputs.

Continuing a folder with another suite or target would mix two runs in one verdict, so that is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tflq.devices.conformance.jobs import RECORD, Job
from tflq.devices.conformance.suite import MANIFEST, Suite
from tflq.errors import FileAccessError, InputError
from tflq.model.storage.archive import Archive
from tflq.model.storage.documents import read_document
from tflq.model.storage.reading import open_file

SCHEMA = "tflq/conform-work/1"
#: Bytes that are read from a file at a time.
_CHUNK = 1 << 20


def suite_mark(archive: Archive) -> str:
    """Return a digest of a suite: of its list of cases, which contains the digests of all models and arrays."""
    return hashlib.sha256(archive[MANIFEST].tobytes()).hexdigest()


def file_marks(words: tuple[str, ...]) -> dict[str, str]:
    """Return a digest of each word that is the path of a file, which reveals a replaced program or script."""
    return {word: _file_mark(word) for word in words if os.path.isfile(word)}


def _file_mark(path: str) -> str:
    mark = hashlib.sha256()
    try:
        with open_file(path) as file:
            while chunk := file.read(_CHUNK):
                mark.update(chunk)
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    return mark.hexdigest()


def claim(job: Job, suite: Suite, mark: str, target: Mapping[str, Any] | None) -> None:
    """Record the target whose outputs the folder holds; `target` is None if another device fills it.

    Raises:
        InputError: The folder holds outputs of another suite or target, or of an unknown one.
        FileAccessError: It cannot be written.
    """
    place = job.folder / RECORD
    found = _read(place)
    if found is None:
        if any((job.folder / case.id).is_dir() for case in suite.cases):
            raise InputError(
                f"holds cases without a record ({RECORD}) of their suite and target: name a new folder",
                name=str(job.folder),
            )
    else:
        check_suite(job, mark)
        known = found["target"]
        if target is None:
            target = known
        elif known is None and any(job.is_done(case) for case in suite.cases):
            raise InputError(
                "holds outputs that another device wrote: judge them with tflq conform check, or name a new folder",
                name=str(job.folder),
            )
        elif known is not None and known != target:
            raise InputError(
                f"holds outputs of another target ({apart(known, target)}): name a new folder", name=str(job.folder)
            )
    document = {"schema": SCHEMA, "suite": mark, "profile": suite.profile, "target": target}
    try:
        place.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise FileAccessError(str(place), error.strerror or str(error)) from error


def check_suite(job: Job, mark: str) -> None:
    """Raise an InputError if the folder's cases belong to another suite, or to an unknown one."""
    found = _read(job.folder / RECORD)
    if found is None:
        raise InputError(
            f"has no record ({RECORD}) of the suite that its cases belong to: make it with tflq conform pack",
            name=str(job.folder),
        )
    if found["suite"] != mark:
        raise InputError(
            f"holds cases of another suite (of {found['profile']}): name a new folder",
            name=str(job.folder),
            expected=mark[:16],
            got=found["suite"][:16],
        )


def profile_of(folder: Path) -> str | None:
    """Return the profile whose outputs the suite of a folder of cases expects; None without a record.

    Raises:
        InputError: The record is malformed.
    """
    found = _read(folder / RECORD)
    return None if found is None else str(found["profile"])


def _read(place: Path) -> dict[str, Any] | None:
    """Return the record of a folder; None if there is none. A target may leave anything there."""
    try:
        is_regular = stat.S_ISREG(place.lstat().st_mode)
    except OSError:
        return None
    if not is_regular:
        raise InputError("is not a regular file", name=str(place), expected="a record of a folder of cases")
    document = read_document(place)
    fits = isinstance(document, dict) and document.get("schema") == SCHEMA
    words = [document.get(name) for name in ("suite", "profile")] if fits else []
    if not fits or not all(isinstance(w, str) for w in words):
        raise InputError("is not a record of a folder of cases", name=str(place), expected=SCHEMA)
    target = document.get("target")
    if target is not None and not isinstance(target, dict):
        raise InputError(
            "does not name the target whose outputs the folder holds", name=str(place), got=f"{target!r:.80}"
        )
    return {"suite": words[0], "profile": words[1], "target": target}


def apart(known: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Return the first facts in which two targets differ."""
    for name in dict.fromkeys((*target, *known)):
        before, now = known.get(name), target.get(name)
        if before != now and isinstance(before, dict) and isinstance(now, dict):
            changed = next(word for word in dict.fromkeys((*before, *now)) if before.get(word) != now.get(word))
            return f"the file {changed} changed"
        if before != now:
            return f"{name}: {before!s:.80}, now {now!s:.80}"
    return "another one"
