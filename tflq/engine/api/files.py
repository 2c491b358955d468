"""Models from files and packages, together with their bytes.

Models from files, and files from models.

Packages that hold models among other files: LiteRT-LM's `.litertlm`, and `.task`, a zip archive.

Every verb takes `FILE` or `FILE:SECTION`. A package is recognized by its first bytes, not by its name.

A model together with the bytes of its file, and its source.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, TypeAlias, overload

from tflq.errors import FileAccessError, FormatError, InputError, LimitError, UnknownNameError
from tflq.model.flatbuf import read
from tflq.model.flatbuf.containers import MAGIC, Place, read_header
from tflq.model.ir import Model
from tflq.model.ir.graph import check_structure
from tflq.model.storage.arrays import ZipStore
from tflq.model.storage.kinds import HEAD, kind_of, kind_of_folder, open_file
from tflq.model.storage.output import written
from tflq.texts import display_by

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
        from tflq.model.flatbuf.containers import is_source, model_in_source

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
        from tflq.model.ir.constants import with_external_buffers

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
def save(model: Model, output: None = None) -> bytes: ...


@overload
def save(model: Model, output: str | os.PathLike[str]) -> int: ...


def save(model: Model, output: str | os.PathLike[str] | None = None) -> bytes | int:
    """Return the bytes of a `.tflite` file for `model`; or write them to `output`, and return their number.

    An existing file is replaced; the new one appears complete or not at all (see `storage.output.written`). It is
    read back before it appears. Constants of more than 2 GB are written from where they are, without a copy in memory.

    Raises:
        FileAccessError: `output` cannot be written.
        FormatError: A value does not fit the file.

    Example:
        >>> model = tflq.load("golden/models/digits_lstm_int8.tflite")
        >>> tflq.save(model, "copy.tflite") == len(tflq.save(model))
        True
    """
    from tflq.model.flatbuf.writer import check, parts, write

    if output is None:
        return write(model)
    pieces = parts(model)
    with written(output) as file:
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


#: The kind of section that holds a model, and of one that holds the external buffers of a model.
MODEL, WEIGHTS = "TFLiteModel", "TFLiteWeights"
_IDENTIFIER = b"TFL3"
_PREFIX = "tf_lite_"
#: The name of a model without one. Source: LiteRT-LM 0.18, LitertLmLoader::MapSections.
_UNNAMED = "prefill_decode"
#: Kinds of files in a `.task`. Source: LiteRT-LM 0.18, runtime/components/model_resources_task.cc.
_TASK_KINDS = MappingProxyType({"TOKENIZER_MODEL": "SP_Tokenizer", "METADATA": "LlmMetadataProto"})

Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class PackageSection:
    """A part of a package: its number, name, kind as LiteRT-LM names it, size in bytes, and items of metadata."""

    number: int
    name: str
    kind: str
    size: int
    items: Mapping[str, str]
    read: Callable[[], Bytes]


@display_by("inspect:package_report")
@dataclass(frozen=True, slots=True)
class Package:
    """A file that holds models, tokenizers and metadata. `format` is "LiteRT-LM 1.7.0" or "zip"."""

    path: str
    format: str
    size: int
    entries: Mapping[str, str]
    sections: tuple[PackageSection, ...]

    @property
    def models(self) -> tuple[PackageSection, ...]:
        """Sections that hold a `.tflite` model."""
        return tuple(section for section in self.sections if section.kind == MODEL)

    def section(self, name: str) -> PackageSection:
        """Return a section by its number, its name, or its kind if no other section has it.

        Raises:
            UnknownNameError: There is none, or there are several.
        """
        wanted = name.lower()
        for key in (_number, _name, _model_type, _kind):
            found = [section for section in self.sections if key(section) == wanted]
            if len(found) == 1:
                return found[0]
        raise UnknownNameError("section", name, tuple(section.name for section in self.sections))

    def model(self, name: str | None = None) -> Bytes:
        """Return the bytes of a model, of the only one if `name` is None.

        Raises:
            InputError: The package holds none, or several and no name is given, or that section is not a model.
            UnknownNameError: There is no such section.
        """
        if name is None:
            if len(self.models) != 1:
                listed = ", ".join(f"{self.path or 'FILE'}:{section.name}" for section in self.models) or "no model"
                raise InputError("name one model of the package", name=self.path, expected=listed)
            return self.models[0].read()
        section = self.section(name)
        if section.kind != MODEL:
            raise InputError("is not a model", name=f"{self.path}:{name}", expected=MODEL, got=section.kind)
        return section.read()

    def weights(self, name: str | None = None) -> Bytes:
        """Return the bytes that the external buffers of a model lie in. Raise InputError if there are none."""
        model = self.models[0] if name is None else self.section(name)
        wanted = f"{model.name}_weights"
        found = [section for section in self.sections if section.kind == WEIGHTS]
        for section in found:
            if section.name == wanted or len(found) == 1:
                return section.read()
        raise InputError("has a model with external buffers, but no section of weights for it", name=self.path)


def _number(section: PackageSection) -> str:
    return str(section.number)


def _name(section: PackageSection) -> str:
    return section.name.lower()


def _model_type(section: PackageSection) -> str:
    return section.items.get("model_type", "").lower()


def _kind(section: PackageSection) -> str:
    return section.kind.lower()


def package_of(data: bytes | memoryview | mmap.mmap, path: str = "") -> Package:
    """Return the package in `data`, whose sections are views of `data`, or unpacked when they are read.

    Raises:
        FormatError: The bytes are no package.
        InputError: The archive is damaged.
    """
    if bytes(data[: len(MAGIC)]) != MAGIC:
        return _task(data, path)
    try:
        header = read_header(data)
    except FormatError as error:
        raise error.of(path) from error
    names = _unique([_place_name(place) for place in header.places])
    view = memoryview(data)
    sections = tuple(
        PackageSection(k, name, place.kind, place.end - place.begin, place.items, _slice(view, place))
        for k, (name, place) in enumerate(zip(names, header.places, strict=True))
    )
    return Package(path, f"LiteRT-LM {header.version}", len(data), header.entries, sections)


def _place_name(place: Place) -> str:
    named = place.items.get("model_type", "").lower().removeprefix(_PREFIX)
    if place.kind == WEIGHTS:
        return f"{named or _UNNAMED}_weights"
    return named or (_UNNAMED if place.kind == MODEL else place.kind)


def _slice(view: memoryview, place: Place) -> Callable[[], Bytes]:
    return lambda: view[place.begin : place.end]


def _unique(names: list[str]) -> list[str]:
    """Return the names, each that occurs several times with its number."""
    return [name if names.count(name) == 1 else f"{name}_{k}" for k, name in enumerate(names)]


def _task(data: bytes | memoryview | mmap.mmap, path: str) -> Package:
    """Return the files of a zip archive. Source of their names: LiteRT-LM 0.18, model_asset_bundle_resources.cc."""
    store = ZipStore(path or "package", io.BufferedReader(_Window(memoryview(data))))
    sections = []
    for k, name in enumerate(store.names()):
        with store.open(name) as file:
            start = file.read(len(MAGIC))
        kind = MODEL if start[4:] == _IDENTIFIER else _TASK_KINDS.get(name, "GenericBinaryData")
        known = name.lower().removeprefix(_PREFIX) if kind == MODEL else name
        sections.append(PackageSection(k, known, kind, store.size(name), {"file": name}, _unpack(store, name)))
    return Package(path, "zip", len(data), {}, tuple(sections))


def _unpack(store: ZipStore, name: str) -> Callable[[], Bytes]:
    def read() -> Bytes:
        with store.open(name) as file:
            return file.read()

    return read


class _Window(io.RawIOBase):
    """A file whose content is a view of memory, without a copy."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._view)}[whence]
        if base + offset < 0:
            raise OSError("a position before the beginning")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer).cast("B")
        part = self._view[self._at : self._at + len(target)]
        target[: len(part)] = part
        self._at += len(part)
        return len(part)


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
