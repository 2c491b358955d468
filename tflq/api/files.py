"""Models from files, and files from models."""

from __future__ import annotations

import mmap
import os
from typing import TypeAlias

from tflq.errors import FileAccessError, FormatError
from tflq.flatbuf import read
from tflq.ir import Model
from tflq.storage.output import write_file
from tflq.storage.reading import open_file

#: The sources of a model: a path, or the bytes of a file.
Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview"


def load(source: Source | Model) -> Model:
    """Return the model in a file or in the bytes of one; a Model is returned unchanged.

    A file is mapped, not read: constants are views into it. Do not change it while the model is in use. Bytes, and
    views of bytes or of a read-only map, are used in place; writable memory is copied first.

    Raises:
        FileAccessError: The path cannot be read.
        FormatError: The bytes are not a valid `.tflite` file.

    Example:
        >>> tflq.load("golden/models/digits_lstm_int8.tflite")
        Model: 117 operators (23 LOGISTIC, 23 MUL, 21 ADD, 16 FULLY_CONNECTED, ...), 2.94 KiB of constants
        'serving_default_args_0:0' int8 [1, 8, 8, 1] -> 'StatefulPartitionedCall_1:0' int8 [1, 10]
        Next: tflq.inspect(model), tflq.Interpreter(model_content=model), tflq.save(model, path)
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, (str, os.PathLike)):
        try:
            return read(_mapped(os.fspath(source)))
        except FormatError as error:
            raise error.of(os.fsdecode(source)) from error
    return read(_frozen(source))


def _mapped(path: str | bytes) -> mmap.mmap | bytes:
    """Return the bytes of a file: a read-only map, or plain bytes if it cannot be mapped, such as an empty file."""
    try:
        with open_file(path) as file:
            if os.name == "nt":  # a map would prevent replacing or removing the file
                return file.read()
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (ValueError, OSError):
                return file.read()
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(os.fsdecode(path), error.strerror or str(error)) from error


def _frozen(data: bytes | bytearray | memoryview) -> bytes | memoryview:
    """Return `data`, without a copy if nobody can write to it."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"expected a path, the bytes of a model or a Model, not {type(data).__name__}") from None
    owner_is_constant = view.readonly and isinstance(view.obj, (bytes, mmap.mmap))
    return view.cast("B") if owner_is_constant and view.c_contiguous else view.tobytes()


def save(model: Model, path: str | os.PathLike[str] | None = None) -> bytes:
    """Return the bytes of a `.tflite` file for `model`, and write them to `path` if one is given.

    An existing file is replaced; the new one appears complete or not at all (see `tflq.storage.output.written`).

    Raises:
        FileAccessError: The path cannot be written.

    Example:
        >>> model = tflq.load("golden/models/digits_lstm_int8.tflite")
        >>> tflq.save(model, "copy.tflite") == tflq.save(model)
        True
    """
    from tflq.flatbuf import write

    data: bytes = write(model)
    if path is not None:
        write_file(path, data)
    return data
