"""Places that hold named files together: a folder, a zip archive, or either at a URL that fsspec knows.

Files at URLs that fsspec knows. What is written is made in a local folder first, and copied when it is complete.

Outputs appear complete or not at all: folders and archives are renamed. At a URL, they are copied when they are
complete, a folder's index last, which readers open first. Archives of equal files in equal order have equal bytes.
"""

from __future__ import annotations

import io
import os
import posixpath
import secrets
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from tflq.errors import FileAccessError, OptionError, TflqError
from tflq.model.storage.arrays import ZipStore
from tflq.model.storage.kinds import open_file
from tflq.model.storage.output import PathLike, record_output, written

#: URLs of local files. fsspec decodes no escapes in them, so that the rest is the path.
_LOCAL = ("file://", "local://")


def is_url(path: PathLike) -> bool:
    """Return whether a path is a URL, such as s3://bucket/name."""
    return "://" in os.fspath(path)


def local_path(path: PathLike) -> str:
    """Return the path that a file:// URL names; any other path or URL unchanged."""
    text = os.fspath(path)
    prefix = next((prefix for prefix in _LOCAL if text.startswith(prefix)), None)
    return text if prefix is None or "::" in text else os.path.expanduser(text[len(prefix) :]) or "/"


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        OptionError: fsspec is missing, does not know the URL, or cannot use it.
    """
    try:
        import fsspec
    except ImportError as error:
        raise OptionError(f"{url}: URLs need the extra remote: pip install 'tflq[remote]'") from error
    try:
        system, place = fsspec.core.url_to_fs(url)
    except Exception as error:  # each protocol raises its own kinds: a missing package, missing options, no connection
        raise OptionError(f"{url}: {error}") from error
    if "::" not in url and "file" in system.protocol:
        raise OptionError(f"{url}: names no protocol; local files are paths or file://")
    return system, place


@contextmanager
def add_types(url: str) -> Iterator[None]:
    """Raise errors of file systems, which have many types, as FileAccessError; a missing file as FileNotFoundError."""
    try:
        yield
    except (TflqError, FileNotFoundError):
        raise
    except Exception as error:
        raise FileAccessError(url, getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


def check_remote(url: str, sources: Iterable[str], index: str, *, replace: bool) -> None:
    """Refuse a URL that cannot be written to, or whose files would be lost.

    Args:
        url: The archive or folder to write.
        sources: URLs that the same work reads.
        index: The file that identifies a folder of tflq.
        replace: True if existing files may be replaced.

    Raises:
        FileAccessError: Describes the problem.
        OptionError: See `file_system`.
    """
    if "::" in url:
        raise OptionError(f"{url}: chained URLs can be read, not written")
    system, place = file_system(url)
    with add_types(url):
        if any(_is_same(system, place, source) for source in sources):
            raise FileAccessError(url, "is an input of this command; name another place")
        if not system.exists(place):
            return
        if url.endswith(".zip") != bool(system.isfile(place)):
            raise FileAccessError(url, "is a folder; name a file" if url.endswith(".zip") else "is a file")
        holds = url.endswith(".zip") or bool(system.ls(place, detail=False))
        if holds and not url.endswith(".zip") and not system.exists(f"{place}/{index}"):
            raise FileAccessError(url, "is a folder that holds something else; name a new one")
        if holds and not replace:
            raise FileAccessError(url, "exists already; --force replaces it")


def _is_same(system: Any, place: str, source: str) -> bool:
    """Return whether a source lies at a place or in it, or the place lies in the source; its last system counts."""
    other, at = file_system(source.rpartition("::")[2])
    one, two = posixpath.normpath(place), posixpath.normpath(at)
    return type(other) is type(system) and (f"{one}/".startswith(f"{two}/") or f"{two}/".startswith(f"{one}/"))


@contextmanager
def upload(url: str, index: str) -> Iterator[str]:
    """Yield a local path; the file or folder made there is copied to a URL if the context ends without an error.

    A file gets its name when all of it is there. Of a folder, `index` is copied last.

    Raises:
        FileAccessError: The URL cannot be written.
    """
    system, place = file_system(url)
    with tempfile.TemporaryDirectory(prefix="tflq-") as folder:
        made = Path(folder, posixpath.basename(place.rstrip("/")) or "bundle")
        yield str(made)
        with add_types(url):
            if made.is_file():
                _put_file(system, made, place)
            else:
                _put_folder(system, made, place.rstrip("/"), index)


def _put_file(system: Any, made: Path, place: str) -> None:
    parent, _, name = place.rpartition("/")
    beside = posixpath.join(parent, f".tflq-{secrets.token_hex(8)}-{name}")
    if parent:
        system.makedirs(parent, exist_ok=True)
    try:
        system.put_file(str(made), beside)
        system.mv(beside, place)
    finally:
        with suppress(Exception):
            if system.exists(beside):
                system.rm_file(beside)


def _put_folder(system: Any, made: Path, place: str, index: str) -> None:
    """Copy a folder, then remove the files of an earlier one that it lacks. Meanwhile there is no index."""
    old = {path[len(place) + 1 :] for path in system.find(place)} if system.exists(place) else set()
    names = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    if index in old:
        system.rm_file(f"{place}/{index}")
    for name in sorted(names, key=lambda name: (name == index, name)):
        system.makedirs(posixpath.dirname(f"{place}/{name}"), exist_ok=True)
        system.put_file(str(made / name), f"{place}/{name}")
    for name in old - names:
        with suppress(Exception):  # the bundle is complete: an extra file does no harm
            system.rm_file(f"{place}/{name}")


class RemoteStore:
    """The files of a folder at a URL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._system, self._place = file_system(url)

    def size(self, name: str) -> int:
        """Return the number of bytes of a file. Raise FileNotFoundError if there is none."""
        with add_types(self._url):
            size = self._system.size(f"{self._place}/{name}")
            if size is None:
                raise FileAccessError(self._url, f"does not report the size of {name}")
            return int(size)

    def open(self, name: str) -> IO[bytes]:
        """Open a file at its beginning. Raise FileNotFoundError if there is none."""
        with add_types(self._url):
            return io.BytesIO(self._system.cat_file(f"{self._place}/{name}"))


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
