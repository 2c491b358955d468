"""The one place where outputs are written: complete or not at all, and never over a file that is still needed."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, TypeAlias

from tflq.errors import FileAccessError, TflqError

PathLike: TypeAlias = "str | os.PathLike[str]"

#: Where `recorded_outputs` collects the written places.
_RECORD: ContextVar[set[str] | None] = ContextVar("recorded outputs", default=None)

#: This process's open files by path: the target may be a regular file, which belongs to the process that opened it.
_DESCRIPTOR = re.compile(r"/dev/(?P<name>stdout|stderr)|(/dev|/proc/self)/fd/(?P<number>\d{1,9})")
_STANDARD = {"stdout": 1, "stderr": 2}
_OPEN_FILES = "/proc/self/fd"


def write_file(path: PathLike, data: bytes) -> None:
    """Write a whole file; see `written`."""
    with written(path) as file:
        file.write(data)


@contextmanager
def recorded_outputs() -> Iterator[set[str]]:
    """Yield a set that gains the real path of every file and folder that is written in the context."""
    record: set[str] = set()
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def record_output(place: str) -> None:
    """Add a real path to the set of `recorded_outputs`, if one is open."""
    record = _RECORD.get()
    if record is not None:
        record.add(place)


@contextmanager
def written(path: PathLike) -> Iterator[IO[bytes]]:
    """Yield a file that appears at `path` if the context ends without an error, and leaves nothing otherwise.

    It is written in the same folder, brought to the disk and then renamed, so that readers see the old file or the new
    one. A symbolic link stays one; devices, pipes and this process's own streams are written to directly.

    Raises:
        FileAccessError: The path cannot be written; the old file is untouched.
    """
    try:
        if is_stream(path):
            whole = io.BytesIO()
            yield whole
            with _stream(path) as stream:
                stream.write(whole.getbuffer())
            return
        place = os.path.realpath(path)
        record_output(place)
        beside = _beside(os.path.dirname(place))
        try:
            with _beginning(beside) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _give_name(file, beside)
            if os.path.exists(place):
                shutil.copymode(place, beside)
            os.replace(beside, place)
        finally:
            with suppress(OSError):
                os.unlink(beside)
    except TflqError:
        raise
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error


def check_outputs(paths: Iterable[PathLike], sources: Iterable[PathLike] = (), *, replace: bool = False) -> None:
    """Refuse outputs that cannot be written, or would destroy something, before any work is done.

    `sources` are the inputs of the same work: files, or folders of files. Existing files are overwritten only with
    `replace`, or if the open `recorded_outputs` wrote them. Streams (see `written`) may always be written to.

    Raises:
        FileAccessError: Names the path and the problem.
    """
    paths, sources = tuple(paths), tuple(sources)
    for number, path in enumerate(paths):
        try:
            if is_stream(path):
                continue
            _check_place(path)
            check_apart(path, sources, paths[:number])
            if not replace and os.path.lexists(path) and os.path.realpath(path) not in (_RECORD.get() or ()):
                raise FileAccessError(path, "exists already; --force replaces it")
        except FileAccessError:
            raise
        except (OSError, ValueError) as error:
            raise _refused(path, error) from error


def _check_place(path: PathLike) -> None:
    text = os.fspath(path)
    with suppress(FileNotFoundError):
        os.stat(path)  # names that are too long, loops of links
    if not text or text.endswith(("/", os.sep)) or os.path.isdir(path):
        raise FileAccessError(path, "is a folder; name a file")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise FileAccessError(path, f"there is no folder {folder}")
    beside = _beside(folder)
    try:
        _beginning(beside).close()
    finally:
        with suppress(OSError):
            os.unlink(beside)


def check_apart(path: PathLike, sources: Iterable[PathLike], others: Iterable[PathLike] = ()) -> None:
    """Refuse an output that is a source, lies in one, or is also another output."""
    for other in others:
        if _is_same(path, other):
            raise FileAccessError(path, "is named for two outputs")
    for source in sources:
        if _is_same(path, source) or _is_within(path, source):
            raise FileAccessError(path, "is an input of this command; name another file")


def _is_same(path: PathLike, other: PathLike) -> bool:
    """Return whether two paths are the same file, by name or through links of both kinds."""
    with suppress(OSError):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _is_within(path: PathLike, folder: PathLike) -> bool:
    """Return whether the path is a file that exists in a folder of sources, or another name of one."""
    if not (os.path.isdir(folder) and os.path.isfile(path)):
        return False
    with os.scandir(folder) as entries:
        return any(_is_same(path, entry.path) for entry in entries)


def is_stream(path: PathLike) -> bool:
    """Return whether a path cannot be replaced: a device, a pipe, or an open file of this process."""
    if _DESCRIPTOR.fullmatch(os.path.abspath(path)):
        return True
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _stream(path: PathLike) -> IO[bytes]:
    """Return a stream to write to. An open file of this process is continued at its position."""
    own = _DESCRIPTOR.fullmatch(os.path.abspath(path))
    if own is None:
        return open(path, "wb")
    if sys.stdout is not None:
        sys.stdout.flush()
    return os.fdopen(os.dup(int(own["number"]) if own["number"] else _STANDARD[own["name"]]), "wb")


def _beside(folder: str) -> str:
    """Return an unused name in that folder."""
    return os.path.join(folder, f".tflq-{os.urandom(8).hex()}")


def _beginning(beside: str) -> IO[bytes]:
    """Return a new file. Linux creates it without a name, so that even a killed process leaves nothing behind."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir(_OPEN_FILES):
        with suppress(OSError):  # not every file system can
            return os.fdopen(os.open(os.path.dirname(beside), os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")
    return open(beside, "x+b")


def _give_name(file: IO[bytes], name: str) -> None:
    """Name a nameless file. Passing a descriptor makes Python follow the link."""
    if not os.path.exists(name):
        os.link(f"{_OPEN_FILES}/{file.fileno()}", name, src_dir_fd=file.fileno(), follow_symlinks=True)


def _refused(path: PathLike, error: OSError | ValueError) -> FileAccessError:
    return FileAccessError(path, getattr(error, "strerror", None) or str(error))
