"""Models from files, and files from models."""

from __future__ import annotations

import mmap
import os
from typing import IO, TYPE_CHECKING, TypeAlias, overload

from tflq.errors import FileAccessError, FormatError, LimitError
from tflq.model.flatbuf import read
from tflq.model.ir import Model
from tflq.model.storage.kinds import HEAD, kind_of, kind_of_folder
from tflq.model.storage.output import written
from tflq.model.storage.reading import open_file

if TYPE_CHECKING:
    from tflq.engine.api.packages import Package

#: First bytes of packages: LiteRT-LM's, and those of zip archives.
_PACKAGE, _ZIP = b"LITERTLM", b"PK\x03\x04"
#: The sources of a model: a path, or the bytes of a file.
Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview"


def load(source: Source | Model) -> Model:
    """Return the model in a file or in the bytes of one; a Model is returned unchanged.

    A file is mapped, not read: constants are views into it. Do not change it while the model is in use. Bytes, and
    views of bytes or of a read-only map, are used in place; writable memory is copied first. A package of LiteRT-LM
    (`.litertlm`, `.task`) gives its model; "FILE:SECTION" names one of several.

    Raises:
        FileAccessError: The path cannot be read.
        FormatError: The bytes are not a valid `.tflite` file.
        InputError, UnknownNameError: A package holds no such model, or several and none is named.

    Example:
        >>> tflq.load("golden/models/digits_lstm_int8.tflite")
        Model: 117 operators (23 LOGISTIC, 23 MUL, 21 ADD, 16 FULLY_CONNECTED, ...), 2.94 KiB of constants
        'serving_default_args_0:0' int8 [1, 8, 8, 1] -> 'StatefulPartitionedCall_1:0' int8 [1, 10]
        Next: tflq.inspect(model), tflq.Interpreter(model_content=model), tflq.save(model, path)
    """
    return source if isinstance(source, Model) else loaded(source)[0]


def loaded(source: Source, *, mapped_from: int = 0) -> tuple[Model, memoryview]:
    """Return the model in a file or in the bytes of one, and the bytes of its `.tflite` file. Raise as `load`.

    A file of fewer than `mapped_from` bytes is read, so that it may change later.
    """
    path = os.fsdecode(source) if isinstance(source, (str, os.PathLike)) else ""
    if isinstance(source, (str, os.PathLike)):
        file, section = split_path(path)
        data: mmap.mmap | bytes | memoryview = _map(file, mapped_from)
    else:
        (file, section), data = ("", None), _frozen(source)
    try:
        if _is_package(data):
            from tflq.engine.api.packages import package_of

            _refuse_foreign(data, path)
            return _pack(package_of(data, file), section)
        data = _of_source(data, section)
    except FormatError as error:
        raise error.of(path) from error
    try:
        return read(data), memoryview(data)
    except FormatError as error:
        raise _explain(error, data, file).of(path) from error


def _of_source(data: mmap.mmap | bytes | memoryview, section: str | None) -> mmap.mmap | bytes | memoryview:
    """Return the bytes of the model in C source, and of any other file its own.

    Raises:
        FormatError: A section is named, and the file is neither C source nor a package.
    """
    if bytes(data[4:8]) != b"TFL3":
        from tflq.model.flatbuf.c_array import is_source, model_in_source

        found = model_in_source(bytes(data), section) if is_source(bytes(data[:HEAD])) else None
        if found is not None:
            return found
    if section is not None:
        raise FormatError("is no package of models, so it has no sections")
    return data


def _explain(error: FormatError, data: mmap.mmap | bytes | memoryview, path: str) -> FormatError:
    """Return the error with what the file is, if it is of another known kind."""
    head = bytes(data[:HEAD])
    if isinstance(error, LimitError) or head[4:8] == b"TFL3" or head.startswith(_ZIP):
        return error
    kind = kind_of(head, path)
    return error if kind is None else FormatError(kind.text)


def _is_package(data: mmap.mmap | bytes | memoryview) -> bool:
    """Return whether the first bytes are those of a LiteRT-LM package or of a zip archive."""
    start = bytes(data[: len(_PACKAGE)])
    return start == _PACKAGE or start.startswith(_ZIP)


def split_path(path: str) -> tuple[str, str | None]:
    """Return the file and the section of `FILE:SECTION`; None if the path names a file, or no file exists."""
    if not os.path.lexists(path):
        file, colon, section = path.rpartition(":")
        if colon and section and os.path.isfile(file):
            return file, section
    return path, None


def _pack(package: Package, section: str | None) -> tuple[Model, memoryview]:
    """Return a model of a package, with its external buffers, and its bytes as a file of its own."""
    data = package.model(section)
    model = read(data)
    if model.external_buffers:
        from tflq.model.ir.external import with_external_buffers

        model = with_external_buffers(model, package.weights(section))
        data = save(model)
    return model, memoryview(data)


def package(path: str | os.PathLike[str]) -> Package | None:
    """Return the package at a path, or None if the path names another file or a section.

    Raises:
        FileAccessError: The path cannot be read.
        FormatError, InputError: The package is damaged.
    """
    if split_path(os.fsdecode(path))[1] is not None:
        return None
    data = _map(os.fspath(path))
    if not _is_package(data):
        return None
    from tflq.engine.api.packages import package_of

    _refuse_foreign(data, os.fsdecode(path))
    return package_of(data, os.fsdecode(path))


def _refuse_foreign(data: mmap.mmap | bytes | memoryview, path: str) -> None:
    """Refuse zip archives of other programs, such as PyTorch's and Keras's files.

    Raises:
        FormatError: It is one.
    """
    head = bytes(data[:HEAD])
    kind = kind_of(head, path, memoryview(data)) if head.startswith(_ZIP) else None
    if kind is not None:
        raise FormatError(kind.text, path=path)


def _map(path: str | bytes, mapped_from: int = 0) -> mmap.mmap | bytes:
    """Return the bytes of a file: a read-only map, or plain bytes if it is small or cannot be mapped."""
    kind = kind_of_folder(os.fsdecode(path)) if os.path.isdir(path) else None
    if kind is not None:
        raise FormatError(kind.text, path=os.fsdecode(path))
    try:
        with open_file(path) as file:
            # On Windows, a map would prevent replacing or removing the file.
            if os.name == "nt" or os.fstat(file.fileno()).st_size < mapped_from:
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


@overload
def save(model: Model, path: None = None) -> bytes: ...


@overload
def save(model: Model, path: str | os.PathLike[str]) -> int: ...


def save(model: Model, path: str | os.PathLike[str] | None = None) -> bytes | int:
    """Return the bytes of a `.tflite` file for `model`; or write them to `path`, and return their number.

    An existing file is replaced; the new one appears complete or not at all (see `storage.output.written`). It is
    read back before it appears. Constants of more than 2 GB are written from where they are, without a copy in memory.

    Raises:
        FileAccessError: The path cannot be written.
        FormatError: A value does not fit the file.

    Example:
        >>> model = tflq.load("golden/models/digits_lstm_int8.tflite")
        >>> tflq.save(model, "copy.tflite") == len(tflq.save(model))
        True
    """
    from tflq.model.flatbuf.writer import check, parts, write

    if path is None:
        return write(model)
    pieces = parts(model)
    with written(path) as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        check(_content(file))
    return sum(map(len, pieces))


def _content(file: IO[bytes]) -> mmap.mmap | bytes:
    """Return the bytes of an open file, mapped where that prevents nothing."""
    file.seek(0)
    if os.name == "nt":  # a map would prevent giving the file its name
        return file.read()
    try:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # in memory, or of a file system without maps
        return file.read()
