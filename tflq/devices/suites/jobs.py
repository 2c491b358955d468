"""Cases in a folder that any target can read, with the target's outputs. docs/target-protocol.md is the protocol.

The record of a folder of cases: the suite that they belong to, and the target that wrote the outputs.

Continuing a folder with another suite or target would mix two runs in one verdict, so that is refused.

Capture the output of a child process: keep its end, and detect endless output.

Arrays of cases that are made for a target and kept in no file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tflq.devices.suites.make import MANIFEST, Case, Suite, arrays, model_of, operators_named
from tflq.errors import FileAccessError, InputError
from tflq.model.storage.arrays import Archive, digest, raw
from tflq.model.storage.documents import read_document
from tflq.model.storage.kinds import open_file
from tflq.typing import Array

LIST, RECORD, OPERATORS_FILE = "cases.txt", "record.json", "operators.txt"
MODEL, REFUSED, DESCRIPTION, OUTPUT = "model.tflite", "refused.txt", "case.txt", "out"
#: Maximum number of bytes that are read of a target's reason, and of its list of operators.
_REASON, _LISTED = 400, 1 << 16
#: The reason of cases that are not asked.
UNSTATED = "not among the operators that the target states"


class CaseFolder:
    """A folder of cases for a target. `stated` are the operators that the target states; None if it states none.

    Cases of other operators are refused by that: a target is not asked for them.

    Raises:
        UnknownNameError: The target states an operator that does not exist.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.stated: frozenset[str] | None = None
        self.read_statement()

    def read_statement(self) -> None:
        """Read the operators that the target stated by now."""
        data = _read(self.folder / OPERATORS_FILE, _LISTED)
        if data is not None:
            self.stated = frozenset(operators_named(data.decode("utf-8", "replace").replace(",", " ").split()))

    def is_asked(self, case: Case) -> bool:
        """Return whether the target may have the case's operator."""
        return self.stated is None or case.op in self.stated

    def create(self) -> None:
        """Create the folder, or take an empty one or an earlier one of the same kind.

        Raises:
            FileAccessError: It cannot be created, or holds something else.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            is_ours = any((self.folder / name).is_file() for name in (LIST, RECORD)) or not any(self.folder.iterdir())
        except OSError as error:
            raise FileAccessError(str(self.folder), error.strerror or str(error)) from error
        if not is_ours:
            raise FileAccessError(str(self.folder), "is a folder that holds something else; name a new one")

    def add(self, case: Case, archive: Archive) -> None:
        """Write a case's model and inputs, unless they exist."""
        place = self.folder / case.id
        try:
            place.mkdir(exist_ok=True)
            if (place / MODEL).exists():
                return
            for number, sample in enumerate(case.samples):
                values = arrays(archive, sample)
                for position, value in enumerate(values):
                    (place / f"in{number}_{position}.bin").write_bytes(raw(value))
            outputs = arrays(archive, case.expected[0]) if case.expected else []
            (place / DESCRIPTION).write_text(_description(case, values, outputs), encoding="ascii")
            (place / MODEL).write_bytes(model_of(archive, case))
        except OSError as error:
            raise FileAccessError(str(place), error.strerror or str(error)) from error

    def ask_for(self, cases: Iterable[Case]) -> None:
        """List the cases that the target must do, in this order."""
        try:
            (self.folder / LIST).write_text("".join(f"{case.id}\n" for case in cases), encoding="ascii")
        except OSError as error:
            raise FileAccessError(str(self.folder / LIST), error.strerror or str(error)) from error

    def is_done(self, case: Case) -> bool:
        """Return whether the target answered a case: with its last output, or with a refusal."""
        outputs = len(case.expected[-1]) if case.expected else 1
        last = f"out{len(case.samples) - 1}_{outputs - 1}.bin"
        return any((self.folder / case.id / name).is_file() for name in (REFUSED, last)) or not self.is_asked(case)

    def refusal(self, case: Case) -> str | None:
        """Return the reason for which the target refused a case; None if it did not."""
        data = _read(self.folder / case.id / REFUSED, _REASON)
        if data is None:
            return None if self.is_asked(case) or self.leftovers(case) else UNSTATED
        return data.decode("utf-8", "replace").strip()

    def leftovers(self, case: Case) -> list[str]:
        """Return the names of the outputs that a target wrote for a case, in alphabetical order."""
        try:
            return sorted(path.name for path in (self.folder / case.id).iterdir() if path.name.startswith(OUTPUT))
        except OSError:
            return []

    def outputs(self, case: Case, like: Sequence[Sequence[Array]]) -> list[list[Array | str]]:
        """Return outputs by sample, of the expected types and shapes; or a description of what is wrong with one."""
        return [
            [self._output(case, number, position, value) for position, value in enumerate(sample)]
            for number, sample in enumerate(like)
        ]

    def _output(self, case: Case, sample: int, position: int, like: Array) -> Array | str:
        name = f"out{sample}_{position}.bin"
        data = _read(self.folder / case.id / name, like.nbytes + 1)
        if data is None:
            return f"no {name}"
        if len(data) != like.nbytes:
            size = f"{len(data)}" if len(data) <= like.nbytes else "more"
            return f"{name}: expected {like.nbytes} bytes, got {size}"
        return np.frombuffer(data, like.dtype.newbyteorder("<")).astype(like.dtype).reshape(like.shape)

    def size(self, case: Case) -> int:
        """Return the number of bytes of a case's model and inputs; 0 if they cannot be read."""
        names = [f"in{n}_{k}.bin" for n, sample in enumerate(case.samples) for k in range(len(sample))]
        try:
            return sum(os.stat(self.folder / case.id / name).st_size for name in (MODEL, *names))
        except OSError:
            return 0

    def forget(self, case: Case) -> None:
        """Remove a target's outputs for a case."""
        with suppress(OSError):
            for path in (self.folder / case.id).iterdir():
                if path.name.startswith(OUTPUT) or path.name == REFUSED:
                    path.unlink()


def _description(case: Case, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """Return the description for targets that cannot read models.

    The first line is `samples N`; types and shapes of inputs and outputs follow.
    """
    tensors = [*(("input", a) for a in inputs), *(("output", a) for a in outputs)]
    lines = [" ".join([kind, a.dtype.name, *map(str, a.shape)]) for kind, a in tensors]
    return "\n".join([f"samples {len(case.samples)}", *lines]) + "\n"


def _read(path: Path, most: int) -> bytes | None:
    """Return the first bytes of a regular file; None if there is none. Targets may leave any kind of file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return None


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


def claim(job: CaseFolder, suite: Suite, mark: str, target: Mapping[str, Any] | None) -> None:
    """Record the target whose outputs the folder holds; `target` is None if another device fills it.

    Raises:
        InputError: The folder holds outputs of another suite or target, or of an unknown one.
        FileAccessError: It cannot be written.
    """
    place = job.folder / RECORD
    found = _records_read(place)
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


def check_suite(job: CaseFolder, mark: str) -> None:
    """Raise an InputError if the folder's cases belong to another suite, or to an unknown one."""
    found = _records_read(job.folder / RECORD)
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
    found = _records_read(folder / RECORD)
    return None if found is None else str(found["profile"])


def _records_read(place: Path) -> dict[str, Any] | None:
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


#: Maximum number of bytes that a target may print in one call.
MOST_PRINTED = 64 << 20
#: Number of last bytes that an error quotes.
_LAST_WORDS = 300
_PIECE = 1 << 16
#: Seconds between two polls of a child, and seconds to wait for the rest of its output after it ends.
_LOOK, _REST = 0.05, 1.0


class PrintedOutput:
    """The output of a child whose stdout is a pipe. A thread reads it until it ends or exceeds the limit."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None  # the child was started with a pipe
        self._child, self._size, self._last = child, 0, b""
        self._pipe = os.dup(child.stdout.fileno())  # the thread may read on after the child's own is closed
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, timeout: float) -> int | None:
        """Return the child's exit status, or None if it printed too much.

        Raises:
            subprocess.TimeoutExpired: It has not ended after that many seconds.
        """
        end = time.monotonic() + timeout
        while self._size <= MOST_PRINTED:
            left = end - time.monotonic()
            try:
                status = self._child.wait(max(0.0, min(left, _LOOK)))
            except subprocess.TimeoutExpired:
                if left <= 0:
                    raise
                continue
            self._thread.join(_REST)
            return status if self._size <= MOST_PRINTED else None
        return None

    def last_words(self) -> str:
        """Return the last line of the output, or its end: a traceback's last line states the error."""
        return self._last.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()

    def _read(self) -> None:
        with os.fdopen(self._pipe, "rb", 0) as pipe:
            while self._size <= MOST_PRINTED and (piece := pipe.read(_PIECE)):
                self._size += len(piece)
                self._last = (self._last + piece)[-_LAST_WORDS:]


class MemoryUse(Mapping[str, Array]):
    """An archive of arrays in memory."""

    source = "questions"

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def put(self, array: Array) -> str:
        """Keep an array and return its digest."""
        name = digest(array)
        self.arrays[f"data/{name}"] = array
        return name

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)
