"""Arguments that callers pass to the interpreter: one model, and shapes."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from tflq.engine.api.files import Source, load
from tflq.errors import FileAccessError, FormatError, InputError, LimitError
from tflq.model.ir import Model
from tflq.typing import Array


def model_of(path: str | os.PathLike[str] | None, content: Source | Model | None) -> Model:
    """Return the model at `path` or in `content`; exactly one of them must be given.

    Error texts begin as LiteRT's: interpreter.py Interpreter.__init__, model_builder.cc.
    """
    if path is not None and content is not None:
        raise InputError("Can't both provide `model_path` and `model_content`")
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"model_path must be a path, not {type(path).__name__}")
        try:
            return load(path)
        except FileAccessError as error:
            raise error.opening(f"Could not open '{error.path}'") from error.__cause__
        except LimitError:
            raise
        except FormatError as error:
            raise error.opening("The model is not a valid Flatbuffer file") from error.__cause__
    if content is not None:
        if isinstance(content, (str, os.PathLike)):
            raise TypeError("model_content must be bytes; a path goes into model_path")
        try:
            return load(content)
        except LimitError:
            raise
        except FormatError as error:
            raise error.opening("The model is not a valid Flatbuffer buffer") from error.__cause__
    raise InputError("`model_path` or `model_content` must be specified.")


def shape_of(size: Sequence[int] | Array) -> tuple[int, ...]:
    """Return a shape from a list or an array of integers."""
    try:
        array = np.asarray(size)
    except (ValueError, OverflowError) as error:
        raise InputError(f"not a shape: {error}") from error
    if array.ndim != 1:
        raise InputError("a shape is a list of integers", got=size)
    if array.size and array.dtype.kind not in "iu":
        raise InputError("a shape is a list of integers", got=size)
    return tuple(int(extent) for extent in array)
