"""A model together with the bytes of its file, and its source."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace

from tflq.engine.api.files import Source, loaded, save
from tflq.model.ir import Model
from tflq.model.ir.structure import check_structure

#: Size in bytes from which a file is mapped: a verb works on a smaller one even if it changes meanwhile.
_MAPPED_FROM = 64 << 20


class Digest:
    """The SHA-256 of bytes, computed when its text is first needed: gigabytes take seconds."""

    __slots__ = ("_data", "_text")

    def __init__(self, data: memoryview) -> None:
        self._data, self._text = data, ""

    def __str__(self) -> str:
        if not self._text:
            self._text = hashlib.sha256(self._data).hexdigest()
            self._data = memoryview(b"")
        return self._text

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Return the form for pickling: the text."""
        return str, (str(self),)


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """Facts about a model: its source ("" for bytes), and its file's size and SHA-256.

    If a converter made the file of another one at `path`: its name and version, and the Python that was named for it.
    """

    path: str
    size: int
    digest: str | Digest
    converter: str = ""
    python: str = ""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file, in hexadecimal digits."""
        return str(self.digest)

    @property
    def is_large(self) -> bool:
        """True if the file is so large that its digest takes long."""
        return self.size >= _MAPPED_FROM


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model with its file's bytes, as a view."""

    facts: ModelFacts
    data: memoryview
    model: Model


def subject(source: Source | Model) -> Subject:
    """Return the model at a path, in bytes, or given as a value (then `save` makes its bytes).

    Raises:
        FileAccessError: The path cannot be read.
        FormatError, InputError, UnknownNameError: See `load`.
        ModelError: The model refers to a part that it does not have.
    """
    if isinstance(source, Model):
        path, model, data = "", source, memoryview(save(source))
    else:
        path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
        model, data = loaded(source, mapped_from=_MAPPED_FROM)
    check_structure(model)
    return Subject(ModelFacts(path, len(data), Digest(data)), data, model)


def store(model: Model, path: str) -> ModelFacts:
    """Write a model, and return the facts of its file, of which the digest is computed when it is asked for.

    Raises:
        FileAccessError, FormatError: See `save`.
    """
    save(model, path)
    return replace(subject(path if os.path.isfile(path) else model).facts, path=path)
