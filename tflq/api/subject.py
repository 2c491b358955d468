"""A model together with the bytes of its file, and its source."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from tflq.api.files import Source, load, save
from tflq.errors import FormatError
from tflq.ir import Model
from tflq.ir.structure import check_structure
from tflq.storage.reading import read_bytes


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """Facts about a model: its source ("" for bytes), and its file's size and SHA-256."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A model with its file's bytes."""

    facts: ModelFacts
    data: bytes
    model: Model


def subject(source: Source | Model) -> Subject:
    """Return the model at a path, in bytes, or given as a value (then `save` makes its bytes).

    Raises:
        FileAccessError: The path cannot be read.
        FormatError: The bytes are not a valid `.tflite` file.
        ModelError: The model refers to a part that it does not have.
    """
    path = ""
    if isinstance(source, Model):
        model, data = source, save(source)
    else:
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            data = read_bytes(path)
        else:
            data = bytes(source)
        model = _model_of(data, path)
    check_structure(model)
    return Subject(ModelFacts(path, len(data), hashlib.sha256(data).hexdigest()), data, model)


def _model_of(data: bytes, path: str) -> Model:
    try:
        return load(data)
    except FormatError as error:
        raise error.of(path) from error
