"""Outputs appear complete or not at all, and nothing that exists or is read is destroyed."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tflq.errors import FileAccessError
from tflq.model.storage import output
from tflq.model.storage.output import check_outputs, write_file, written


def test_a_file_is_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"1")
    write_file(tmp_path / "a", b"22")
    assert (tmp_path / "a").read_bytes() == b"22"
    assert os.listdir(tmp_path) == ["a"]


def half_written(place: Path, error: BaseException) -> None:
    with written(place) as file:
        file.write(b"half")
        raise error


@pytest.mark.parametrize("nameless", [True, False])
def test_the_old_file_stays_where_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    if not nameless:
        monkeypatch.setattr(output, "_OPEN_FILES", str(tmp_path / "none"))
    place = tmp_path / "a"
    place.write_bytes(b"old")
    for error, raised in (
        (OSError(errno.ENOSPC, "No space"), FileAccessError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ):
        with pytest.raises(raised):
            half_written(place, error)
    assert (place.read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])
    write_file(place, b"new")
    assert (place.read_bytes(), os.listdir(tmp_path)) == (b"new", ["a"])


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX")
def test_the_old_file_stays_on_a_full_disk(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from tflq.errors import FileAccessError; from tflq.model.storage.output import write_file\n"
        "try: write_file(sys.argv[1], bytes(1 << 20))\n"
        "except FileAccessError as error: sys.exit(str(error))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "File too large" in done.stderr) == (1, True), done.stderr
    assert ((tmp_path / "a").read_bytes(), os.listdir(tmp_path)) == (b"old", ["a"])


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links are POSIX")
def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    place, link = tmp_path / "a", tmp_path / "link"
    write_file(place, b"1")
    place.chmod(0o640)
    link.symlink_to("a")
    write_file(link, b"2")
    assert (place.read_bytes(), stat.S_IMODE(place.stat().st_mode)) == (b"2", 0o640)
    assert link.is_symlink()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such paths")
def test_streams_are_written_to_as_they_are(tmp_path: Path) -> None:
    check_outputs(["/dev/null", "/dev/full"])
    write_file("/dev/null", b"1")
    with pytest.raises(FileAccessError, match="No space"):
        write_file("/dev/full", b"1")
    program = "from tflq.model.storage.output import write_file\nprint('before')\n" + (
        "write_file('/dev/stdout', b'-')\nprint('after')"
    )
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\n-after\n"
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    write_file(tmp_path / "pipe", b"through")
    assert reader.communicate()[0] == b"through"
    assert (tmp_path / "pipe").is_fifo()


def refused(*paths: object, sources: tuple[object, ...] = (), replace: bool = False) -> str:
    with pytest.raises(FileAccessError) as found:
        check_outputs(map(str, paths), map(str, sources), replace=replace)
    return str(found.value)


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"1")
    assert "no folder" in refused(tmp_path / "no" / "a")
    assert "is a folder" in refused(tmp_path)
    assert "is a folder" in refused(f"{tmp_path}/new/")
    assert "is a folder" in refused("")
    assert "--force" in refused(tmp_path / "old")
    assert "two outputs" in refused(tmp_path / "new", tmp_path / "." / "new")
    assert "null" in refused("a\0b")
    assert refused(tmp_path / ("x" * 300))
    check_outputs([tmp_path / "old"], replace=True)
    check_outputs([tmp_path / "new"])
    assert os.listdir(tmp_path) == ["old"]


def test_a_folder_that_takes_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(beside: str) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(output, "_beginning", read_only)
    assert refused(tmp_path / "a").endswith("Read-only file system")


@pytest.mark.skipif(sys.platform == "win32", reason="links are POSIX")
@pytest.mark.parametrize("replace", [True, False])
def test_what_is_read_is_never_written_over(tmp_path: Path, replace: bool) -> None:
    source, folder = tmp_path / "in", tmp_path / "samples"
    source.write_bytes(b"1")
    folder.mkdir()
    (folder / "0.npy").write_bytes(b"2")
    (tmp_path / "soft").symlink_to(source)
    (tmp_path / "hard").hardlink_to(source)
    (tmp_path / "sample").hardlink_to(folder / "0.npy")
    for path in (source, tmp_path / "samples" / ".." / "in", tmp_path / "soft", tmp_path / "hard"):
        assert "is an input" in refused(path, sources=(source,), replace=replace)
    for path in (folder / "0.npy", tmp_path / "sample"):
        assert "is an input" in refused(path, sources=(folder,), replace=replace)
    check_outputs([folder / "new"], [folder, source, tmp_path / "missing"])
