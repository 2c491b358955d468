"""Cases in a folder that any target can read, with the target's outputs. docs/target-protocol.md is the protocol."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from tflq.devices.conformance.suite import Case, arrays, model_of
from tflq.errors import FileAccessError
from tflq.model.storage.archive import Archive
from tflq.typing import Array

LIST, RECORD = "cases.txt", "record.json"
MODEL, REFUSED, DESCRIPTION, OUTPUT = "model.tflite", "refused.txt", "case.txt", "out"
#: Maximum number of characters that are read of a target's reason.
_REASON = 400


class Job:
    """A folder of cases for a target."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)

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
        return any((self.folder / case.id / name).is_file() for name in (REFUSED, last))

    def refusal(self, case: Case) -> str | None:
        """Return the reason for which the target refused a case; None if it did not."""
        data = _read(self.folder / case.id / REFUSED, _REASON)
        return None if data is None else data.decode("utf-8", "replace").strip()

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


def raw(array: Array) -> bytes:
    """Return an array's elements, little endian, in C order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _read(path: Path, most: int) -> bytes | None:
    """Return the first bytes of a regular file; None if there is none. Targets may leave any kind of file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with open(path, "rb") as file:
            return file.read(most)
    except OSError:
        return None
