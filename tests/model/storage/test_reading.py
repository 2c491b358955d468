"""Only regular files are read: a pipe, a socket or a device may never end."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

import tflq
from support import commands, suites
from support.each import each
from tflq.comparison.goldens.stored import load_golden
from tflq.errors import FileAccessError
from tflq.model.storage.arrays import load_array, opened
from tflq.model.storage.documents import read_document
from tflq.model.storage.kinds import open_file, read_bytes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are POSIX")
MODEL = suites.ROOT / "golden" / "models" / "digits_mobilenet_int8.tflite"


@pytest.fixture(params=["pipe", "socket", "device", "folder"])
def odd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A path that names no regular file."""
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    if request.param == "device":
        return "/dev/zero"
    if request.param == "pipe":
        os.mkfifo("odd")
    elif request.param == "folder":
        os.mkdir("odd")
    else:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("odd")
    return "odd"


def test_what_is_no_file_is_refused(odd: str) -> None:
    for read in (open_file, read_bytes, load_array, read_document, tflq.load, load_golden):
        with pytest.raises(FileAccessError):
            read(odd)
    with pytest.raises(FileAccessError), opened(odd):
        pass


VERBS = (
    ("inspect", "{}"),
    ("verify", "{}", "--golden", MODEL),
    ("verify", MODEL, "--golden", "{}"),
    ("verify", MODEL, "--inputs", "{}"),
    ("explain", MODEL, "--dump", "{}"),
    ("golden", "show", "{}"),
    ("conform", "run", "{}", "--target", "true"),
    ("quantize", MODEL, "--calibration", "{}", "-o", "out.tflite"),
)


@each("words", VERBS, ids=lambda words: f"{words[0]}-{words[-1]}")
def test_verbs_refuse_it(odd: str, words: tuple[object, ...]) -> None:
    done = commands.tflq(*[str(word).replace("{}", odd) for word in words])
    assert (done.exit_code, "fault in tflq" in done.stderr) == (2, False), done.output


@pytest.mark.parametrize("name", ["manifest.json", "samples.jsonl"])
def test_a_pipe_in_a_bundle_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "bundle").mkdir()
    os.mkfifo(tmp_path / "bundle" / name)
    done = commands.tflq("golden", "show", tmp_path / "bundle")
    assert done.exit_code == 2
