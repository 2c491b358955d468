"""Kinds of files, recognized by content, and how they are opened.

Files that are no `.tflite` model: their kind, recognized by content, and the next step in one sentence.

Open files to read. Pipes, sockets and devices are refused: they may never end.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from tflq.errors import FileAccessError
from tflq.model.storage.output import PathLike

#: Bytes at the beginning of a file that are looked at.
HEAD = 4096
_ZIP = b"PK\x03\x04"

#: Converters that `quantize` and `compare` call by themselves.
TENSORFLOW, ONNX2TF = "tensorflow", "onnx2tf"
_TAKEN = "`tflq quantize` takes it, with {} installed or named by --python; other verbs take the .tflite that it writes"
_TORCH_CALL = "litert_torch.convert(model.eval(), inputs).export(path)"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: what it is, what helps, and the converter that makes a model of it."""

    name: str
    help: str
    converter: str = ""

    @property
    def text(self) -> str:
        """The sentence of an error."""
        return f"is {self.name}, not a .tflite model: {self.help}"


_ONNX = Kind("an ONNX model", _TAKEN.format("onnx2tf"), ONNX2TF)
_TORCH = Kind("a PyTorch file", f"`{_TORCH_CALL}` makes a float .tflite, which `tflq quantize` takes")
_KERAS = Kind("a Keras model", _TAKEN.format("TensorFlow"), TENSORFLOW)
_HDF5 = Kind("a Keras model (HDF5)", _KERAS.help, TENSORFLOW)
_SAVED = Kind("a SavedModel", _KERAS.help, TENSORFLOW)
_ARRAYS = Kind("an archive of arrays", "the model comes first, then what is compared with it")
_PROGRAM = Kind("a program", "the model inside may be extracted by its tools; tflq reads .tflite files")
_IMAGE = Kind("an image", "the model comes first; images go to --inputs or --calibration")

#: Kinds by the end of a name, if the content is not known.
_SUFFIXES = {".keras": _KERAS, ".h5": _HDF5, ".hdf5": _HDF5, ".onnx": _ONNX}

#: Kinds by their first bytes.
_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89HDF\r\n\x1a\n", _HDF5),
    (b"\x93NUMPY", Kind("an array of NumPy", "the model comes first, then what is compared with it")),
    (b"GGUF", Kind("a GGUF model of llama.cpp", "export the original model with litert-torch")),
    (b"\x89PNG", _IMAGE),
    (b"\xff\xd8\xff", _IMAGE),
    (b"BM", _IMAGE),
    (b"\x1f\x8b", Kind("a gzip archive", "unpack it first: `gunzip` or `tar xzf`")),
    (b"\x7fELF", _PROGRAM),
    (b"MZ", _PROGRAM),
    (b"\xcf\xfa\xed\xfe", _PROGRAM),
    (b"!<arch>", _PROGRAM),
    (b"7z\xbc\xaf", Kind("a 7-Zip archive", "unpack it first: `7z x`")),
    (b"\xfd7zXZ", Kind("an xz archive", "unpack it first: `unxz` or `tar xJf`")),
    (b"BZh", Kind("a bzip2 archive", "unpack it first: `bunzip2` or `tar xjf`")),
    (b"\x28\xb5\x2f\xfd", Kind("a Zstandard archive", "unpack it first: `unzstd`")),
    (b"%PDF", Kind("a PDF", "the model comes first")),
    (b"RKNN", Kind("a Rockchip model (.rknn)", "give the .tflite that it was converted from")),
    (b"\xff\xfe", Kind("a text in UTF-16", "save it as UTF-8 first")),
    (b"\xfe\xff", Kind("a text in UTF-16", "save it as UTF-8 first")),
    (b"version https://git-lfs", Kind("a pointer of Git LFS", "`git lfs pull` fetches the model")),
    (b"\x80\x02", _TORCH),
    (b"\x80\x04", Kind("a Python pickle", "export the model as .tflite where it was made")),
)
#: Kinds by the file identifier of FlatBuffers, at byte 4.
_IDENTIFIERS: tuple[tuple[bytes, Kind], ...] = (
    (b"ET1", Kind("an ExecuTorch program (.pte)", "export the PyTorch model with litert-torch")),
    (b"TOSA", Kind("a TOSA flatbuffer", "give the .tflite that it was made from")),
    (b"IREE", Kind("an IREE module", "give the .tflite that it was compiled from")),
)
#: Kinds of zip archives by a file in them.
_MEMBERS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"model\.weights\.h5"), _KERAS),
    (re.compile(r".*/?data\.pkl|.*constants\.pkl|.*serialized_exported_program\.json"), _TORCH),
    (re.compile(r".*\.npy"), _ARRAYS),
    (re.compile(r".*saved_model\.pb"), Kind("a zipped SavedModel", "unpack it: `tflq quantize` takes the folder")),
)
_TEXTS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"\s*(?:<!doctype html|<html)", re.I), Kind("a web page", "the download gave a page, not the file")),
    (re.compile(r"(?:<\?xml[^>]*>\s*)?<net\b"), Kind("an OpenVINO model", "give the model that it was converted from")),
    (re.compile(r"\s*(?:\{\s*[\"}]|\[\s*(?:[\"{\[\]]|[-\d.e+]+\s*,))"), Kind("a text (JSON)", "the model comes first")),
)


def kind_of(head: bytes, path: str = "", whole: bytes | memoryview | None = None) -> Kind | None:
    """Return the kind of a file by its first bytes; None if it is not known.

    `whole` is the content where it is at hand, for zip archives.
    """
    for start, kind in _STARTS:
        if head.startswith(start):
            return kind
    for identifier, kind in _IDENTIFIERS:
        if head[4:].startswith(identifier):
            return kind
    if head[257:262] == b"ustar":
        return Kind("a tar archive", "unpack it first: `tar xf`")
    if head.startswith(_ZIP):
        return None if whole is None else _of_zip(BytesIO(whole))
    if re.match(rb"\x08[\x01-\x14][\x12\x1a\x22\x32\x3a\x42]", head):
        return _ONNX
    if re.match(rb".{7}\0\{\"", head, re.DOTALL):
        return Kind("a safetensors file", "it holds weights only; export the whole model with litert-torch")
    if head[:1] == b"\x0a" and re.search(rb"Placeholder|Const|saved_model|serve", head):
        name = (
            "the inside of a SavedModel" if os.path.basename(path) == "saved_model.pb" else "a TensorFlow graph (.pb)"
        )
        return Kind(name, "`tflq quantize` takes the SavedModel's folder; TFLiteConverter converts frozen graphs")
    if head and is_text(head):
        text = head.decode("utf-8", "replace")
        found = next((kind for pattern, kind in _TEXTS if pattern.match(text)), None)
        return found or Kind("a text", "the model comes first, then a log or an array of it")
    return None


def is_evidence(head: bytes) -> bool:
    """Return whether a file begins as a log or as an array or archive of NumPy."""
    kind = kind_of(head)
    is_plain = kind is not None and kind.name in ("a text", "an array of NumPy")
    return is_plain or (kind is None and head.startswith(_ZIP) and b".npy" in head)


def kind_of_folder(path: str) -> Kind | None:
    """Return the kind of a folder; None if it is not known."""
    if (Path(path) / "saved_model.pb").is_file():
        return _SAVED
    return None


def converter_at(path: str | os.PathLike[str]) -> str:
    """Return the converter of the model at a path, by its content, else by its name; "" if it needs none."""
    name = os.fsdecode(path)
    if os.path.isdir(name):
        kind = kind_of_folder(name)
    else:
        try:
            with open(name, "rb") as file:
                head = file.read(HEAD)
                known = _of_zip(file) if head.startswith(_ZIP) else kind_of(head, name)
        except OSError:
            return ""
        named = None if head[4:8] == b"TFL3" else _SUFFIXES.get(Path(name).suffix.lower())
        kind = known or named
    return "" if kind is None else kind.converter


def is_text(head: bytes) -> bool:
    """Return whether a file begins like text: no zero bytes, and few control characters."""
    odd = sum(byte < 32 and byte not in b"\t\n\r\x1b\x08\x0c" for byte in head)
    return 0 not in head and odd * 50 <= len(head)


def _of_zip(file: IO[bytes]) -> Kind | None:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(file) as archive:
            names = archive.namelist()[:1000]
    except (BadZipFile, NotImplementedError, ValueError, OSError):
        return None
    return next((kind for pattern, kind in _MEMBERS if any(map(pattern.fullmatch, names))), None)


_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


def open_file(path: PathLike | bytes) -> IO[bytes]:
    """Open a regular file.

    Raises:
        FileAccessError: It cannot be read, or is not a regular file.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise FileAccessError(os.fsdecode(path), "is a folder; name a file")
        _check_regular(path, os.stat(path).st_mode)  # before it is opened: opening a device may have effects
        file = os.fdopen(os.open(path, _FLAGS), "rb")  # O_NONBLOCK: a pipe that takes its place does not block
        try:
            _check_regular(path, os.fstat(file.fileno()).st_mode)
        except FileAccessError:
            file.close()
            raise
        return file
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(os.fsdecode(path), error.strerror or str(error)) from error
    except ValueError as error:  # a path with a null character
        raise FileAccessError(repr(path), str(error)) from error


def _check_regular(path: PathLike | bytes, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise FileAccessError(
            os.fsdecode(path), "is not a regular file: copy it to one, or give - and pipe it to stdin"
        )


def read_bytes(path: PathLike) -> bytes:
    """Return the content of a regular file. Raise as `open_file`."""
    with open_file(path) as file:
        try:
            return file.read()
        except OSError as error:
            raise FileAccessError(path, error.strerror or str(error)) from error
