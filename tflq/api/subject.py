"""A model together with the bytes of its file, and its source."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from tflq.api.files import Source, loaded, save
from tflq.ir import Model
from tflq.ir.structure import check_structure

#: Size in bytes from which a file is mapped: a verb works on a smaller one even if it changes meanwhile.
_MAPPED_FROM = 64 << 20


@dataclass(frozen=True, slots=True, eq=False)
class ModelFacts:
    """Facts about a model: its source ("" for bytes), and its file's size and SHA-256."""

    path: str
    size: int
    sha256: str


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
    return Subject(ModelFacts(path, len(data), hashlib.sha256(data).hexdigest()), data, model)
