"""Answers of a device in a folder, so that learning that was interrupted goes on without asking them again.

The learner draws its questions from a seed, so that a question is found again by its model and inputs. Failures are not
kept: a device that crashed or hung is asked again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tflq.devices.conformance.draft import Draft
from tflq.devices.conformance.records import apart
from tflq.devices.conformance.suite import arrays
from tflq.devices.learning.answer import Answer, empty_outputs
from tflq.errors import FileAccessError, InputError
from tflq.model.storage.archive import opened, write_arrays
from tflq.model.storage.arrays import digest
from tflq.model.storage.documents import read_document, read_json
from tflq.model.storage.output import write_file
from tflq.typing import Array

SCHEMA = "tflq/learn-work/1"
_RECORD, _LIST, _PATTERN = "record.json", "answers", "answers-*.npz"


class Kept:
    """A folder of answers. Equal questions that a course asks twice have two answers.

    Raises:
        InputError: It holds answers of another target or version of tflq, or damaged ones.
        FileAccessError: It cannot be read or written, or holds something else.
    """

    def __init__(self, folder: str, target: Mapping[str, Any]) -> None:
        self.folder, self._turns = Path(folder), Counter[str]()
        self._answers: dict[str, tuple[str | None, tuple[tuple[Array, ...], ...]]] = {}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(self.folder.iterdir())
        except OSError as error:
            raise FileAccessError(folder, error.strerror or str(error)) from error
        record = {"schema": SCHEMA, "tflq": version("tflq"), "target": json.loads(json.dumps(target))}
        if is_empty:
            write_file(self.folder / _RECORD, json.dumps(record, indent=1).encode())
        self._check(record)
        self._files = sorted(self.folder.glob(_PATTERN))
        for file in self._files:
            self._read(file)

    def __len__(self) -> int:
        return len(self._answers)

    def answer(self, draft: Draft) -> tuple[str, Answer | None]:
        """Return the key of a question that is asked now, and its answer if there is one."""
        key = _key_of(draft)
        self._turns[key] += 1
        key = f"{key}-{self._turns[key]}"
        if key not in self._answers:
            return key, None
        refusal, outputs = self._answers[key]
        like = empty_outputs(draft)
        fits = refusal is not None or (
            len(outputs) == len(draft.samples)
            and all([(o.dtype, o.shape) for o in one] == [(o.dtype, o.shape) for o in like] for one in outputs)
        )
        if not fits:
            raise InputError("holds outputs of other shapes; remove the folder", name=str(self.folder))
        return key, Answer(draft, outputs, refusal or "", refusal is not None)

    def keep(self, answers: Sequence[tuple[str, Answer]]) -> None:
        """Write answers, the failures among them left out, as one file: whole or not at all."""
        told = [(key, answer) for key, answer in answers if answer.is_answered or answer.refused]
        if not told:
            return
        data = {digest(output): output for _, a in told for sample in a.outputs for output in sample}
        listed = [
            {
                "key": key,
                "refused": a.reason if a.refused else None,
                "outputs": [list(map(digest, s)) for s in a.outputs],
            }
            for key, a in told
        ]
        text = json.dumps({"schema": SCHEMA, _LIST: listed}).encode()
        named = {f"data/{name}": value for name, value in data.items()}
        file = self.folder / f"answers-{len(self._files):05d}.npz"
        write_arrays(file, {_LIST: np.frombuffer(text, np.uint8), **named}, compress=True)
        self._files.append(file)

    def remove(self) -> None:
        """Remove the folder's answers, and the folder if nothing else is in it."""
        try:
            for path in (*self.folder.glob(_PATTERN), self.folder / _RECORD):
                path.unlink()
            self.folder.rmdir()
        except OSError:
            return

    def _check(self, record: Mapping[str, Any]) -> None:
        place = self.folder / _RECORD
        if not place.is_file():
            raise FileAccessError(str(self.folder), "is a folder that holds something else; name a new one")
        found = read_document(place)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA or not isinstance(found.get("target"), dict):
            raise InputError("is not a record of a learner's answers", name=str(place), expected=SCHEMA)
        if found.get("tflq") != record["tflq"]:
            why = f"holds answers to questions of tflq {found.get('tflq')!s:.40}"
        elif found["target"] != record["target"]:
            why = f"holds answers of another target ({apart(found['target'], record['target'])})"
        else:
            return
        raise InputError(f"{why}: name another folder with --work, or remove this one", name=str(self.folder))

    def _read(self, file: Path) -> None:
        try:
            with opened(file) as archive:
                document = read_json(archive[_LIST].tobytes(), str(file))
                for one in document[_LIST]:
                    outputs = tuple(tuple(arrays(archive, sample)) for sample in one["outputs"])
                    self._answers[str(one["key"])] = (one["refused"], outputs)
        except (InputError, KeyError, TypeError, AttributeError) as error:
            why = "is damaged; remove it, and its questions are asked again"
            raise InputError(why, name=str(file), got=str(error)[:120]) from error


def _key_of(draft: Draft) -> str:
    mark = hashlib.sha256(draft.model())
    for sample in draft.samples:
        for value in sample:
            mark.update(digest(value).encode())
    return mark.hexdigest()[:40]
