"""Places that hold named files together: a folder, a zip archive, or either at a URL that fsspec knows.

Outputs appear complete or not at all: folders and archives are renamed. At a URL, they are copied when they are
complete, a folder's index last, which readers open first. Archives of equal files in equal order have equal bytes.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import IO, Protocol

from tflq.errors import FileAccessError, TflqError
from tflq.model.storage.output import PathLike, record_output, written
from tflq.model.storage.reading import open_file
from tflq.model.storage.remote import RemoteStore, add_types, file_system, is_url, local_path, upload
from tflq.model.storage.zips import ZipStore

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)


class Store(Protocol):
    """Named files that can be read."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes. Raise FileNotFoundError if there is none."""
        ...

    def open(self, name: str) -> IO[bytes]:
        """Return a file, opened at its beginning. Raise FileNotFoundError if there is none."""
        ...


class Sink(Protocol):
    """A place for named files, written one after another."""

    def new(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Return a file to write; its name is new."""
        ...


def is_zip(path: PathLike) -> bool:
    """Return whether a path is that of a zip archive, by its name."""
    return os.fspath(path).endswith(".zip")


@contextmanager
def open_store(path: PathLike) -> Iterator[Store]:
    """Yield the files at a path or URL.

    Raises:
        FileAccessError: It cannot be read.
        InputError: The file is not an archive.
        OptionError: A URL without the extra `remote`.
    """
    with ExitStack() as stack:
        yield _store(local_path(path), stack)


def _store(source: str, stack: ExitStack) -> Store:
    """Return the files at a path or URL; it is closed with the stack."""
    if is_url(source):
        if not is_zip(source):
            return RemoteStore(source)
        system, place = file_system(source)
        with add_types(source):
            raw = stack.enter_context(system.open(place, "rb"))
    elif os.path.isdir(source):
        return _Folder(source)
    else:
        raw = stack.enter_context(open_file(source))
    return ZipStore(source, raw)


def _refuse(path: PathLike, error: OSError | ValueError) -> TflqError:
    """Return the error as one of this package, with the path; its own errors are returned unchanged."""
    return (
        error if isinstance(error, TflqError) else FileAccessError(path, getattr(error, "strerror", None) or str(error))
    )


@contextmanager
def write_store(path: PathLike, index: str) -> Iterator[Sink]:
    """Yield a folder, archive or URL to fill; `index` is the file that is written last and read first.

    A folder is replaced if it is empty or has an index.

    Raises:
        FileAccessError: The path cannot be written; the old files are untouched.
        OptionError: A URL without the extra `remote`.
    """
    source = local_path(path)
    if is_url(source):
        with upload(source, index) as local, write_store(local, index) as sink:
            yield sink
    elif is_zip(source):
        with written(source) as raw, zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
            yield _ZipSink(archive)
    else:
        with _new_folder(source, index) as folder:
            yield _FolderSink(folder)


def check_folder(path: PathLike, index: str) -> None:
    """Refuse a folder that cannot be written, or that holds files but no `index`.

    Raises:
        FileAccessError: Names the problem.
    """
    place = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(place)):
        raise FileAccessError(path, f"there is no folder {os.path.dirname(place)}")
    if not os.access(os.path.dirname(place), os.W_OK):
        raise FileAccessError(path, "its folder cannot be written")
    if os.path.isdir(place) and os.listdir(place) and not os.path.isfile(os.path.join(place, index)):
        raise FileAccessError(path, "is a folder that holds something else; name a new one")
    if os.path.lexists(place) and not os.path.isdir(place):
        raise FileAccessError(path, "is a file; a folder is to be written")


@contextmanager
def _new_folder(path: str, index: str) -> Iterator[str]:
    """Yield a folder next to `path`, which gets its name if the context ends without an error."""
    check_folder(path, index)
    place = os.path.realpath(path)
    record_output(place)
    try:
        with tempfile.TemporaryDirectory(prefix=".tflq-", dir=os.path.dirname(place)) as beside:
            new, old = os.path.join(beside, "new"), os.path.join(beside, "old")
            os.mkdir(new)
            yield new
            if os.path.isdir(place):
                shutil.copymode(place, new)
                os.rename(place, old)
            os.rename(new, place)
    except OSError as error:
        raise _refuse(path, error) from error


class _Folder:
    def __init__(self, path: str) -> None:
        self._path = path

    def size(self, name: str) -> int:
        status = os.stat(os.path.join(self._path, name))
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(name)
        return status.st_size

    def open(self, name: str) -> IO[bytes]:
        self.size(name)  # a pipe would never end
        return open(os.path.join(self._path, name), "rb")


class _FolderSink:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def new(self, name: str) -> AbstractContextManager[IO[bytes]]:
        path = os.path.join(self._folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "xb")


class _ZipSink:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def new(self, name: str) -> AbstractContextManager[IO[bytes]]:
        info = zipfile.ZipInfo(name, _FIRST_DAY)
        info.compress_type = zipfile.ZIP_DEFLATED
        return self._archive.open(info, "w", force_zip64=True)
