"""`.npz` archives of arrays, read and written entry by entry; nothing is ever pickled or unpickled.

An array is stored under its name if that is a safe file name, otherwise under another key. The entry `tflq_names`,
UTF-8 JSON, maps such keys to names; it exists only if it is needed, and reading applies it.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from tflq.errors import InputError, LimitError, TflqError
from tflq.escaping import quoted
from tflq.model.storage.arrays import Header, read_elements, read_header, read_rows, row_size
from tflq.model.storage.documents import BYTES, check_size, read_json
from tflq.model.storage.output import PathLike, written
from tflq.model.storage.reading import open_file
from tflq.typing import Array

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


def write_arrays(path: PathLike, arrays: Mapping[str, Array], *, compress: bool = False) -> dict[str, str]:
    """Write an archive; equal arrays give equal bytes. Return the key of each name. See `output.written`.

    Raises:
        FileAccessError: The path cannot be written.
        ValueError: An array holds Python objects.
    """
    keys = keys_of(arrays)
    renamed = {key: name for name, key in keys.items() if key != name}
    entries = {keys[name]: array for name, array in arrays.items()}
    if renamed:
        entries[MANIFEST] = np.frombuffer(json.dumps(renamed).encode(), np.uint8)
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with written(path) as raw, zipfile.ZipFile(raw, "w", method) as file:
        for key, array in entries.items():
            info = zipfile.ZipInfo(key + _SUFFIX, _FIRST_DAY)
            info.compress_type = method
            with file.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return keys


def keys_of(names: Iterable[str]) -> dict[str, str]:
    """Return, by name, a unique key that is a safe file name wherever the archive is unpacked."""
    names = tuple(names)
    taken = {name for name in names if _is_harmless(name)} | {MANIFEST}
    keys = {}
    for position, name in enumerate(names):
        key = name
        if not _is_harmless(name):
            key = f"name_{position}"
            while key in taken:
                key += "_"
            taken.add(key)
        keys[name] = key
    return keys


def _is_harmless(name: str) -> bool:
    """Return whether a name is a safe file name, below any folder, that NumPy returns unchanged."""
    if not name.isprintable() or name == MANIFEST or name.endswith(_SUFFIX):
        return False
    parts = re.split(r"[/\\]", name)
    return bool(parts[0]) and not {".", ".."} & set(parts) and len(name.encode()) <= _LONGEST


def _key_of(info: zipfile.ZipInfo) -> str:
    """Return the key of an entry, without NumPy's .npy; empty for a folder."""
    return "" if info.is_dir() else info.filename.removesuffix(_SUFFIX)
