"""Packages that hold models among other files: LiteRT-LM's `.litertlm`, and `.task`, a zip archive.

Every verb takes `FILE` or `FILE:SECTION`. A package is recognized by its first bytes, not by its name.
"""

from __future__ import annotations

import io
import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tflq.display import display_by
from tflq.errors import FormatError, InputError, UnknownNameError
from tflq.model.flatbuf.litertlm import MAGIC, Place, read_header
from tflq.model.storage.zips import ZipStore

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
class Section:
    """A part of a package: its number, name, kind as LiteRT-LM names it, size in bytes, and items of metadata."""

    number: int
    name: str
    kind: str
    size: int
    items: Mapping[str, str]
    read: Callable[[], Bytes]


@display_by("inspect.package:package_report")
@dataclass(frozen=True, slots=True)
class Package:
    """A file that holds models, tokenizers and metadata. `format` is "LiteRT-LM 1.7.0" or "zip"."""

    path: str
    format: str
    size: int
    entries: Mapping[str, str]
    sections: tuple[Section, ...]

    @property
    def models(self) -> tuple[Section, ...]:
        """Sections that hold a `.tflite` model."""
        return tuple(section for section in self.sections if section.kind == MODEL)

    def section(self, name: str) -> Section:
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


def _number(section: Section) -> str:
    return str(section.number)


def _name(section: Section) -> str:
    return section.name.lower()


def _model_type(section: Section) -> str:
    return section.items.get("model_type", "").lower()


def _kind(section: Section) -> str:
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
        Section(k, name, place.kind, place.end - place.begin, place.items, _slice(view, place))
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
        sections.append(Section(k, known, kind, store.size(name), {"file": name}, _unpack(store, name)))
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
