"""Results of candidates, logged to a file on the way, so that a stopped run can resume from there.

The file is JSON, one object per line. The first line holds the inputs on which the run depends (model, recipe, samples,
version). Each later line is an entry for a finished piece of work, in order. Numbers are written so that the same
float64 is read back. The work of a truncated line is repeated. A run that reaches its end deletes the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tflq.errors import FileAccessError, InputError, TflqError
from tflq.model.flatbuf.writer import parts
from tflq.model.ir import Model
from tflq.model.storage.reading import read_bytes
from tflq.quantization.judge.selection import Ranked, Score
from tflq.quantization.recipe.files import digest, plain
from tflq.quantization.recipe.recipe import Methods, Recipe
from tflq.quantization.runner import Sample

SCHEMA = "tflq/quantize-journal/2"
#: The inputs on which a run depends, in words.
NAMES = {"model": "model", "recipe": "recipe", "samples": "calibration data", "tflq": "version of tflq"}


class Journal:
    """Entries by key; nothing is kept without a path."""

    def __init__(self, path: str | os.PathLike[str] | None, run: Mapping[str, str]) -> None:
        """Read the journal at `path` of the run that depends on `run`; if there is no file, begin it.

        Raises:
            InputError: The file is not a journal, or belongs to another run: the message names the difference.
            FileAccessError: It cannot be read or written.
        """
        self._path = None if path is None else Path(path)
        self._entries: dict[str, Any] = {}
        self.kept = False  # whether the file stays after a complete run
        if self._path is None:
            return
        head = {"schema": SCHEMA, **run}
        try:
            lines = read_bytes(self._path).splitlines(keepends=True) if self._path.exists() else []
        except OSError as error:
            raise FileAccessError(self._path, error.strerror or str(error)) from error
        whole = [line for line in lines if line.endswith(b"\n")]
        if lines and not (len(lines) == 1 and _line(head).startswith(lines[0])):  # truncated in the first line
            self._require(_read(lines[0]), head)
        for number, line in enumerate(whole[1:], 2):
            entry = _read(line)
            if entry.get("mark") != _mark(entry["key"], entry["value"]):
                raise InputError(f"{self._path}: line {number} was changed since it was noted; move that file away")
            self._entries[entry["key"]] = entry["value"]
        with suppress(FileNotFoundError):
            os.truncate(self._path, sum(map(len, whole)))  # without the truncated line
        if not whole:
            self._append(head)

    def get(self, key: str) -> Any:
        """Return the value of a key, None if it was never noted."""
        return self._entries.get(key)

    def note(self, key: str, value: Any) -> None:
        """Note a value that JSON can represent."""
        if self._path is not None:
            self._entries[key] = value
            self._append({"key": key, "value": value, "mark": _mark(key, value)})

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Delete the file if the run reached its end, or an error that a new run would meet again."""
        if self._path is not None and (error is None or isinstance(error, TflqError)) and not self.kept:
            self._path.unlink(missing_ok=True)

    def _append(self, document: Mapping[str, Any]) -> None:
        assert self._path is not None  # checked before
        try:
            with self._path.open("ab") as file:
                file.write(_line(document))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise FileAccessError(self._path, error.strerror or str(error)) from error

    def _require(self, found: Mapping[str, Any], head: Mapping[str, str]) -> None:
        """Refuse a file that is not a journal, or one that differs from `head` in the inputs it names."""
        if found.get("schema") != SCHEMA:
            raise InputError(f"{self._path}: expected a journal of tflq quantize ({SCHEMA}); move that file away")
        other = [word for field, word in NAMES.items() if found.get(field) != head[field]]
        if other:
            raise InputError(
                f"{self._path} belongs to a run with another {' and another '.join(other)}: use the same, or start "
                "over without --resume"
            )


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _mark(key: object, value: object) -> str:
    """Return a digest of an entry, which detects changed entries."""
    return hashlib.sha256(json.dumps([key, value], sort_keys=True).encode()).hexdigest()[:16]


def _read(line: bytes) -> dict[str, Any]:
    """Return the object of a line, or an empty one if it holds none."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        document = None
    return {"schema": None, "key": "", "value": None, **(document if isinstance(document, dict) else {})}


def run_facts(model: Model, recipe: Recipe, samples: Iterable[Sample]) -> dict[str, str]:
    """Return the inputs on which a run depends: digests of model, recipe and samples, and the version of tflq."""
    file, data = hashlib.sha256(), hashlib.sha256()
    for part in parts(model):
        file.update(part)
    for sample in samples:
        for tensor, values in sample.items():
            data.update(f"{tensor} {values.dtype.str} {values.shape} ".encode())
            data.update(np.ascontiguousarray(values).data if values.size else b"")
    return {"model": file.hexdigest(), "recipe": digest(recipe), "samples": data.hexdigest(), "tflq": version("tflq")}


def entry_key(what: str, methods: Methods) -> str:
    """Return the key of a candidate in a turn or heat."""
    return f"{what} {hashlib.sha256(json.dumps(plain(methods), sort_keys=True).encode()).hexdigest()}"


def entry_of(ranked: Ranked) -> dict[str, Any]:
    """Return the journal entry of a candidate's result."""
    score = ranked.score
    if score is None:
        return {"error": ranked.error}
    return {
        "divergences": None if score.divergences is None else score.divergences.tolist(),
        "signal": score.signal,
        "noise": score.noise,
        "same": score.same,
        "samples": score.samples,
        "noises": score.noises.tolist(),
        "differing": score.differing,
        "groups": [[name, noises.tolist()] for name, noises in score.groups],
    }


def rank_from(methods: Methods, entry: Mapping[str, Any]) -> Ranked:
    """Return a candidate's result, the inverse of `entry_of`."""
    if "error" in entry:
        return Ranked(methods, None, entry["error"])
    divergences = None if entry["divergences"] is None else np.array(entry["divergences"], np.float64)
    score = Score(
        divergences,
        entry["signal"],
        entry["noise"],
        entry["same"],
        entry["samples"],
        np.array(entry["noises"], np.float64),
        entry["differing"],
        tuple((name, np.array(values, np.float64)) for name, values in entry.get("groups", ())),
    )
    return Ranked(methods, score)
