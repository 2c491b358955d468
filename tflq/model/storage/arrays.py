"""Arrays in NumPy's format and in archives, read without trust.

Arrays in NumPy's format, read without trust: type and shape first, memory only for the elements in the file.

Source: NumPy's documentation of its format (NEP 1), versions 1.0 and 2.0.

`.npz` archives of arrays, read and written entry by entry; nothing is ever pickled or unpickled.

An array is stored under its name if that is a safe file name, otherwise under another key. The entry `tflq_names`,
UTF-8 JSON, maps such keys to names; it exists only if it is needed, and reading applies it.

Files in zip archives of unknown origin: any damage raises an InputError.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tflq.errors import FileAccessError, InputError, LimitError, TflqError, memory_named
from tflq.model.storage.documents import BYTES, check_size, read_json
from tflq.model.storage.kinds import open_file
from tflq.model.storage.output import PathLike, written
from tflq.texts import quoted
from tflq.typing import Array

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_CHUNK = 1 << 20
#: An array without elements takes no bytes, for any declared number of rows.
_EMPTY_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """The header of an array's file; `by_columns` is Fortran's order."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool = False

    @property
    def size(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize


def raw(array: Array) -> bytes:
    """Return an array's elements, little endian, in C order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def digest(array: Array) -> str:
    """Return the name of an array: 32 hexadecimal digits of the SHA-256 of its type, shape and elements in C order."""
    said = f"{array.dtype.str}{list(array.shape)}".encode()
    return hashlib.sha256(said + np.ascontiguousarray(array).tobytes()).hexdigest()[:32]


def load_array(path: PathLike) -> Array:
    """Return the array in an `.npy` file.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: It holds no array.
    """
    with _open(path) as (file, header):
        return read_elements(file, header)


def load_rows(path: PathLike) -> Iterator[Array]:
    """Yield the rows, along axis 0, of the array in an `.npy` file, one after another. Raise as `load_array`."""
    with _open(path) as (file, header):
        yield from read_rows(file, header)


@contextmanager
def _open(path: PathLike) -> Iterator[tuple[IO[bytes], Header]]:
    try:
        with open_file(path) as file:
            header = read_header(file)
            if header.size > os.fstat(file.fileno()).st_size - file.tell():
                raise ValueError(f"is too short for {header.dtype} {list(header.shape)}")
            yield file, header
    except FileAccessError:
        raise
    except OSError as error:
        raise FileAccessError(path, error.strerror or str(error)) from error
    except (ValueError, EOFError) as error:
        raise InputError(f"is not a readable .npy file ({error})", name=os.fspath(path)) from error


def read_header(file: IO[bytes]) -> Header:
    """Read up to the first element.

    Raises:
        ValueError: It is not an array, or one of Python objects.
    """
    version = np.lib.format.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"is of version {version} of NumPy's format, which is not read")
    try:
        shape, by_columns, dtype = _READERS[version](file)
    except Exception as error:  # it is a Python expression, of which NumPy and Python's tokenizer raise many kinds
        raise ValueError(f"cannot parse its header: {error}") from error
    if dtype.hasobject:
        raise ValueError("holds Python objects, which are never unpickled")
    header = Header(tuple(map(int, shape)), dtype, bool(by_columns))
    empty = header.size == 0 and max(header.shape, default=0) > _EMPTY_ROWS
    if any(extent < 0 for extent in header.shape) or dtype.itemsize == 0 or empty:
        raise ValueError(f"is not an array: {dtype} {list(shape)}")
    return header


def read_elements(file: IO[bytes], header: Header) -> Array:
    """Return the array after its header, from a file with enough bytes.

    Raises:
        EOFError: The file ends early.
    """
    with memory_named(f"an array of shape {list(header.shape)}"):
        flat = np.empty(math.prod(header.shape), header.dtype)
    _fill(file, flat)
    return flat.reshape(header.shape[::-1]).T if header.by_columns else flat.reshape(header.shape)


def row_size(header: Header) -> int:
    """Return the bytes that reading an array row by row needs at once; in Fortran's order, those of the whole."""
    return header.size if header.by_columns or not header.shape else header.size // max(header.shape[0], 1)


def read_rows(file: IO[bytes], header: Header) -> Iterator[Array]:
    """Yield the rows of the array after its header. Raise as `read_elements`, or ValueError for a single number."""
    if not header.shape:
        raise ValueError("has no rows: a single number")
    if header.by_columns:
        yield from read_elements(file, header)
        return
    row = replace(header, shape=header.shape[1:])
    for _ in range(header.shape[0]):
        yield read_elements(file, row)


def _fill(file: IO[bytes], flat: Array) -> None:
    """Read all elements of a flat array. Raise EOFError if the file ends early."""
    data = flat.view(np.uint8).data
    at = 0
    while at < len(data):
        piece = file.read(min(_CHUNK, len(data) - at))
        if not piece:
            raise EOFError(f"ends after {at} of {len(data)} bytes")
        data[at : at + len(piece)] = piece
        at += len(piece)


MANIFEST = "tflq_names"
_SUFFIX = ".npy"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Limit on the size of an unpacked archive of n bytes: 512 MiB, or 32 n if that is more. Recorded tensors shrink to
#: about a fifth.
_BASE, _PER_BYTE = 512 << 20, 32
_LONGEST = 240  # bytes of a key: most systems allow file names of 255
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # equal arrays give equal bytes


class Archive(Mapping[str, Array]):
    """The arrays of an open archive by name; each is read on demand, and kept nowhere."""

    def __init__(self, source: str, file: zipfile.ZipFile, allowance: int, streamed: bool) -> None:
        self.source, self._file, self._allowance, self._streamed = source, file, allowance, streamed
        self._taken = 0
        self._keys = {key: info for info in file.infolist() if (key := _key_of(info))}
        self._names = {key: key for key in self._keys}
        if MANIFEST in self._keys:
            self._names = self._true_names()

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __getitem__(self, name: str) -> Array:
        """Return the array. Raise InputError if the entry is not one, LimitError beyond the archive's allowance."""
        with self._open(name) as (file, header):
            self._charge(header.size)
            array = read_elements(file, header)
            if file.read(1):
                raise ValueError("continues after its last element")
            return array

    def header(self, name: str) -> Header:
        """Return type and shape of an array without reading the rest."""
        with self._open(name) as (_, header):
            return header

    def rows(self, name: str) -> Iterator[Array]:
        """Yield the rows of an array, along axis 0, one after another; raise as for reading it whole."""
        with self._open(name) as (file, header):
            self._charge(row_size(header))
            yield from read_rows(file, header)

    def document(self, name: str) -> Any:
        """Return the JSON document in an array of bytes. Raise InputError if it is not one."""
        check_size(self.header(name).size, BYTES, self.source)
        return read_json(self[name].tobytes(), f"{self.source}: {name}")

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[IO[bytes], Header]]:
        info = self._keys[self._names[name]]
        try:
            if info.compress_type not in _METHODS:
                raise ValueError("is neither stored nor deflated")
            with self._file.open(info) as file:
                header = read_header(file)
                if header.size > info.file_size - file.tell():
                    raise ValueError(f"is too short for {header.dtype} {list(header.shape)}")
                yield file, header
        except TflqError:
            raise
        except Exception as error:  # zipfile and numpy raise many kinds for broken entries
            raise InputError(f"entry {quoted(name)}: {error}", name=self.source) from error

    def _charge(self, size: int) -> None:
        self._taken = size if self._streamed else self._taken + size
        if self._taken > self._allowance:
            raise LimitError(f"holds more than {self._allowance:,} bytes to be kept in memory", path=self.source)

    def _true_names(self) -> dict[str, str]:
        """Return the keys by name, from the manifest."""
        named = self.document(MANIFEST)
        if not isinstance(named, dict):
            raise InputError(f"{MANIFEST} is not a mapping of keys to names", name=self.source)
        keys = {key: key for key in self._keys if key != MANIFEST and key not in named}
        for key, name in named.items():
            if key not in self._keys or not isinstance(name, str) or name in keys:
                raise InputError(f"{MANIFEST} does not fit the entries", name=self.source, got=key)
            keys[name] = key
        return keys


@contextmanager
def opened(path: PathLike, *, streamed: bool = False) -> Iterator[Archive]:
    """Yield the archive at `path`.

    The amount that may be read is proportional to its size: in all, or if it is `streamed` and nothing is kept, for
    each array or row.

    Raises:
        FileAccessError: The path cannot be read.
        InputError: It is not an archive.
    """
    source = os.fspath(path)
    with open_file(source) as raw, _directory(source, raw) as file:
        size = os.fstat(raw.fileno()).st_size
        yield Archive(source, file, max(_BASE, _PER_BYTE * size), streamed)


def _directory(source: str, raw: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(raw)
    except Exception as error:  # zipfile raises many kinds for broken archives
        raise InputError(f"is not a readable .npz archive ({error})", name=source) from error


def write_arrays(
    path: PathLike, arrays: Mapping[str, Array] | Iterable[tuple[str, Array]], *, compress: bool = False
) -> dict[str, str]:
    """Write an archive; equal arrays give equal bytes. Return the key of each name. See `output.written`.

    Pairs of name and array are written as they come; no more than one is kept.

    Raises:
        FileAccessError: The path cannot be written.
        ValueError: An array holds Python objects.
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    keys: dict[str, str] = {}
    taken = {MANIFEST}
    with written(path) as raw, zipfile.ZipFile(raw, "w", method) as file:
        for name, array in arrays.items() if isinstance(arrays, Mapping) else arrays:
            keys[name] = _new_key(name, taken)
            _write(file, keys[name], array, method)
        renamed = {key: name for name, key in keys.items() if key != name}
        if renamed:
            _write(file, MANIFEST, np.frombuffer(json.dumps(renamed).encode(), np.uint8), method)
    return keys


def _write(file: zipfile.ZipFile, key: str, array: Array, method: int) -> None:
    info = zipfile.ZipInfo(key + _SUFFIX, _FIRST_DAY)
    info.compress_type = method
    with file.open(info, "w", force_zip64=True) as entry:
        np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def _new_key(name: str, taken: set[str]) -> str:
    """Return a key that is not taken, a safe file name wherever the archive is unpacked; it is then taken."""
    key = name if _is_harmless(name) else f"name_{len(taken)}"
    while key in taken:
        key += "_"
    taken.add(key)
    return key


def _is_harmless(name: str) -> bool:
    """Return whether a name is a safe file name, below any folder, that NumPy returns unchanged."""
    if not name.isprintable() or name == MANIFEST or name.endswith(_SUFFIX):
        return False
    parts = re.split(r"[/\\]", name)
    return bool(parts[0]) and not {".", ".."} & set(parts) and len(name.encode()) <= _LONGEST


def _key_of(info: zipfile.ZipInfo) -> str:
    """Return the key of an entry, without NumPy's .npy; empty for a folder."""
    return "" if info.is_dir() else info.filename.removesuffix(_SUFFIX)


#: Limit on the unpacked size of a file: 512 MiB, or 32 times its compressed size if that is more.
_ENCRYPTED = 0x1
_PIECE = 1 << 16


class ZipStore:
    """The files of an open zip archive."""

    def __init__(self, source: str, raw: IO[bytes]) -> None:
        self._source = source
        try:
            self._archive = zipfile.ZipFile(raw)
            names = self._archive.namelist()
        except Exception as error:  # zipfile raises many kinds for broken archives
            raise InputError(f"is not a readable zip archive ({error})", name=source) from error
        if len(set(names)) != len(names):
            raise InputError("is a zip archive that holds a name twice", name=source)

    def names(self) -> tuple[str, ...]:
        """Return the names of the files, without folders."""
        return tuple(info.filename for info in self._archive.infolist() if not info.is_dir())

    def size(self, name: str) -> int:
        """Return the number of bytes of a file. Raise FileNotFoundError if there is none."""
        return self._info(name).file_size

    def open(self, name: str) -> IO[bytes]:
        """Open a file at its beginning. Raise FileNotFoundError if there is none."""
        info = self._info(name)
        try:
            entry = self._archive.open(info)
        except Exception as error:
            raise self._damage(name, error) from error
        return io.BufferedReader(_Entry(self, name, entry), _PIECE)

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            info = self._archive.getinfo(name)
        except KeyError:
            raise FileNotFoundError(name) from None
        if info.compress_type not in _METHODS:
            raise InputError(f"{name} is neither stored nor deflated", name=self._source)
        if info.flag_bits & _ENCRYPTED:
            raise InputError(f"{name} is encrypted", name=self._source)
        if info.file_size > max(_BASE, _PER_BYTE * info.compress_size):
            raise InputError(f"{name} is {info.file_size:,} bytes out of {info.compress_size:,}", name=self._source)
        return info

    def _damage(self, name: str, error: Exception) -> InputError:
        return InputError(f"{name} is damaged ({str(error) or type(error).__name__})", name=self._source)


class _Entry(io.RawIOBase):
    """A file in an archive. zipfile and zlib raise many types of errors during reading."""

    def __init__(self, store: ZipStore, name: str, entry: IO[bytes]) -> None:
        self._store, self._name, self._entry = store, name, entry

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            data = self._entry.read(len(view))
        except Exception as error:
            raise self._store._damage(self._name, error) from error
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._entry.close()
        super().close()
