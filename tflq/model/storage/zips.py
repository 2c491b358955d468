"""Files in zip archives of unknown origin: any damage raises an InputError."""

from __future__ import annotations

import io
import zipfile
from typing import IO, TYPE_CHECKING

from tflq.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Limit on the unpacked size of a file: 512 MiB, or 32 times its compressed size if that is more.
_BASE, _PER_BYTE = 512 << 20, 32
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
