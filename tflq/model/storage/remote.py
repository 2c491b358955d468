"""Files at URLs that fsspec knows, with the promises of local files.

An archive is written next to its place and then renamed. In a folder, the files at its top (its index) are written
last; if anything fails, they get their earlier content back and new files are removed.
"""

from __future__ import annotations

import io
import os
import posixpath
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from tflq.errors import FileAccessError, OptionError, TflqError
from tflq.model.storage.output import PathLike

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
def write_url(url: str) -> Iterator[IO[bytes]]:
    """Yield a file that appears at a URL if the context ends without an error; until then the old file stays.

    Raises:
        FileAccessError: The URL cannot be written.
    """
    system, place = file_system(url)
    folder, _, name = place.rpartition("/")
    beside = f"{folder}/.tflq-{secrets.token_hex(8)}-{name}" if folder else f".tflq-{secrets.token_hex(8)}-{name}"
    try:
        with add_types(url):
            if folder:
                system.makedirs(folder, exist_ok=True)
            raw = system.open(beside, "wb")
        try:
            yield raw
        finally:
            with add_types(url):
                raw.close()
        with add_types(url):
            system.mv(beside, place)
    finally:
        with suppress(Exception):
            if system.exists(beside):
                system.rm_file(beside)


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


class RemoteSink:
    """A folder at a URL under construction. Files at its top are kept until `finish` writes them."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._system, self._place = file_system(url)
        self._top: dict[str, bytes] = {}
        self._names: set[str] = set()
        self._fresh: list[str] = []
        with add_types(url):
            self._old = self._files()

    @contextmanager
    def new(self, name: str) -> Iterator[IO[bytes]]:
        """Yield a file to write; its name is new."""
        whole = io.BytesIO()
        yield whole
        if "/" in name:
            self._names.add(name)
            self._put(name, whole.getvalue())
        else:
            self._top[name] = whole.getvalue()

    def finish(self) -> None:
        """Write the files at the top, and remove files of the earlier bundle."""
        earlier = {}
        with add_types(self._url):
            for name in self._old & set(self._top):
                earlier[name] = self._system.cat_file(self._path(name))
        try:
            for name, data in self._top.items():
                self._put(name, data)
        except BaseException:
            for name, data in earlier.items():
                with suppress(Exception):
                    self._system.pipe_file(self._path(name), data)
            raise
        for name in self._old - self._names - set(self._top):
            with suppress(Exception):  # the bundle is complete: an extra file does no harm
                self._system.rm_file(self._path(name))

    def undo(self) -> None:
        """Remove the files that did not exist before."""
        for name in self._fresh:
            with suppress(Exception):
                self._system.rm_file(self._path(name))

    def _put(self, name: str, data: bytes) -> None:
        path = self._path(name)
        if name not in self._old:
            self._fresh.append(name)
        with add_types(self._url):
            self._system.makedirs(posixpath.dirname(path), exist_ok=True)
            self._system.pipe_file(path, data)

    def _path(self, name: str) -> str:
        return f"{self._place.rstrip('/')}/{name}"

    def _files(self) -> set[str]:
        """Return the names of the files in the folder."""
        if not self._system.exists(self._place):
            return set()
        start = len(self._place.rstrip("/")) + 1
        return {path[start:] for path in self._system.find(self._place)}
