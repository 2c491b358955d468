"""Folders that cannot be written to, full disks and damaged caches: results stay right, and what is wrong is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts and unwritable folders as Linux has them"),
]

MODEL = suites.ROOT / "golden" / "singleop" / "models" / "relu6_i8_0.tflite"
NOT_KEPT = "tflq: machine code is not kept: "


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command; an empty word stands for a variable that is not set."""
    own = {name: value for name, value in {**os.environ, **environment}.items() if value}
    command = [sys.executable, "-m", "tflq.face.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=own)


def expected() -> bytes:
    """The model's output for its first input of zeros, from this process."""
    interpreter = tflq.Interpreter(str(MODEL))
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(given["index"], np.zeros(given["shape"], given["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(made["index"]).tobytes()


def right(folder: Path, **environment: str) -> str:
    """What a run says to stderr, that gives a JSON document and the right result."""
    shape = tflq.Interpreter(str(MODEL)).get_input_details()[0]
    np.save(folder / "x.npy", np.zeros(shape["shape"], shape["dtype"]))
    out = folder / "out.npz"
    out.unlink(missing_ok=True)
    done = run("run", str(MODEL), "--inputs", str(folder / "x.npy"), "-o", str(out), "--json", **environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    with np.load(out) as entries:
        assert expected() in [entries[name].tobytes() for name in entries]
    return done.stderr


def test_a_home_that_cannot_be_written_to(tmp_path: Path) -> None:
    """/proc lets nobody make a folder, root neither."""
    told = right(tmp_path, HOME="/proc", NUMBA_CACHE_DIR="", XDG_CACHE_HOME="")
    assert told.startswith(NOT_KEPT)
    assert told.count("\n") == 1


def test_damaged_caches_and_caches_of_others(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert right(tmp_path, NUMBA_CACHE_DIR=str(cache)) == ""
    folder = cache / "tflq" / "machine-code"
    entries = sorted(folder.iterdir())
    assert entries
    for number, entry in enumerate(entries):
        whole = entry.read_bytes()
        entry.write_bytes((whole[: len(whole) // 2], b"garbage", b"")[number % 3])
    assert right(tmp_path, NUMBA_CACHE_DIR=str(cache)) == ""
    assert sorted(folder.iterdir()) == entries  # dropped, and written anew
    folder.chmod(0o777)
    told = right(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert told.startswith(NOT_KEPT)
    assert "others can write to it" in told


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Mounts a file system of 64 KiB, gives a function that fills it and returns its folder."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this user cannot mount a file system")

    def fill() -> Path:
        with (place / "filling").open("wb", buffering=0) as file:
            while True:
                try:
                    file.write(bytes(4096))
                except OSError:
                    return place

    try:
        yield fill
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_below_the_cache(full_disk: Callable[[], Path], tmp_path: Path) -> None:
    place = full_disk()
    told = right(tmp_path, NUMBA_CACHE_DIR=str(place))
    assert told.startswith(NOT_KEPT)
    assert told.count("\n") == 1


def test_a_full_disk_below_an_output(full_disk: Callable[[], Path], tmp_path: Path) -> None:
    """The file that was there stays, and nothing comes beside it."""
    place = tmp_path / "disk"
    (place / "out.npz").write_bytes(b"old")
    (place / "golden.npz").write_bytes(b"old")
    full_disk()
    shape = tflq.Interpreter(str(MODEL)).get_input_details()[0]
    np.save(tmp_path / "x.npy", np.zeros(shape["shape"], shape["dtype"]))
    for words in (
        ["run", str(MODEL), "--inputs", str(tmp_path / "x.npy"), "-o", str(place / "out.npz"), "--force"],
        ["record", str(MODEL), "-o", str(place / "golden.npz"), "--force"],
    ):
        done = run(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert done.stderr.count("\n") == 1
        assert "No space left" in done.stderr
    assert {path.name: path.stat().st_size for path in place.iterdir() if path.name != "filling"} == {
        "out.npz": 3,
        "golden.npz": 3,
    }


def test_a_full_disk_below_temporary_files(full_disk: Callable[[], Path], tmp_path: Path) -> None:
    """Python's tempfile takes the next folder of its list."""
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    done = run("record", str(MODEL), "-o", str(tmp_path / "golden.npz"), TMPDIR=str(full_disk()))
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "disk").iterdir()) == ["filling"]
