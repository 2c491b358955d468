"""Machine code on disk: read back only where this user alone could have written it, and never needed."""

from __future__ import annotations

import dis
import importlib
import logging
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import pytest

import tflq
from tflq.engine.jit import code_store, compiled, processors
from tflq.engine.jit.building import build
from tflq.engine.jit.code_store import CodeFolder

posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> CodeFolder:
    return CodeFolder(tmp_path / "cache" / "code")


@pytest.fixture
def entry(folder: CodeFolder) -> Path:
    folder.write("f", b"machine code")
    return folder.path / "f"


def test_what_was_written_is_read(folder: CodeFolder, entry: Path) -> None:
    assert CodeFolder(folder.path).read("f") == b"machine code"
    assert folder.read("g") is None


@posix
def test_only_the_user_may_enter(folder: CodeFolder, entry: Path) -> None:
    assert folder.path.stat().st_mode & 0o777 == folder.path.parent.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600


def test_a_damaged_entry_is_removed_and_can_be_written_again(folder: CodeFolder, entry: Path) -> None:
    whole = entry.read_bytes()
    for damaged in (b"", b"garbage", whole[:31], whole[:-1], whole + b"x", whole[:40] + b"\0" + whole[41:]):
        entry.write_bytes(damaged)
        assert folder.read("f") is None
        assert not entry.exists()
        folder.write("f", b"machine code")
        assert entry.read_bytes() == whole


def test_an_entry_under_another_name_is_damaged(folder: CodeFolder, entry: Path) -> None:
    entry.rename(folder.path / "g")
    assert folder.read("g") is None


def test_the_first_of_two_writers_wins(folder: CodeFolder, entry: Path) -> None:
    folder.write("f", b"other")
    assert folder.read("f") == b"machine code"


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_to_is_not_read(folder: CodeFolder, entry: Path, mode: int) -> None:
    entry.chmod(mode)
    assert folder.read("f") is None


@posix
def test_a_link_to_an_entry_is_not_followed(folder: CodeFolder, entry: Path, tmp_path: Path) -> None:
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert folder.read("f") is None
    assert not entry.is_symlink()
    assert (tmp_path / "elsewhere").exists()


@posix
def test_a_pipe_in_place_of_an_entry_does_not_block(folder: CodeFolder) -> None:
    os.mkfifo(folder.path / "pipe")
    assert folder.read("pipe") is None
    assert not (folder.path / "pipe").exists()


@as_root
def test_an_entry_of_another_user_is_not_read(folder: CodeFolder, entry: Path) -> None:
    os.chown(entry, NOBODY, NOBODY)
    assert folder.read("f") is None


def refused(path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """The one warning of a folder that is not used, although there is an entry to read."""
    with caplog.at_level(logging.WARNING, "tflq"):
        folder = CodeFolder(path)
        for name in ("f", "g"):
            folder.write(name, b"more")
            assert folder.read(name) is None
    (record,) = caplog.records
    return record.getMessage()


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to(
    folder: CodeFolder, entry: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    folder.path.chmod(mode)
    assert "others can write to it" in refused(folder.path, caplog)
    assert os.listdir(folder.path) == ["f"]


@as_root
def test_a_folder_of_another_user(folder: CodeFolder, entry: Path, caplog: pytest.LogCaptureFixture) -> None:
    os.chown(folder.path, NOBODY, NOBODY)
    assert "belongs to another user" in refused(folder.path, caplog)


@posix
def test_a_link_to_a_folder(folder: CodeFolder, entry: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "link").symlink_to(folder.path)
    assert "symbolic link" in refused(tmp_path / "link", caplog)


@posix
def test_a_folder_below_one_that_everybody_can_write_to(
    folder: CodeFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.path.parent.chmod(0o1777)  # as /tmp: others cannot take away what is mine
    assert CodeFolder(folder.path).read("f") == b"machine code"
    folder.path.parent.chmod(0o777)
    assert "above" in refused(folder.path, caplog)


def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    assert "cannot be created" in refused(tmp_path / "file" / "code", caplog)


# --- compiled functions -----------------------------------------------------------------------------------------------

SOURCE = """
import numpy as np
from tflq.engine.jit.compiled import compiled
TABLE = np.arange(100)
FACTOR = 2
@compiled
def inner(n):
    return n * FACTOR
@compiled
def outer(n):
    return inner(n) + TABLE[n]
"""
COMPILED, LOADED = (60, "compiled"), (60, "loaded")


@pytest.fixture
def run(folder: CodeFolder, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Runs the outer of two functions of some source: its result for 20, and where its machine code came from."""
    built: list[Any] = []
    monkeypatch.setattr("tflq.engine.jit.code_store.code_folder", lambda: folder)
    monkeypatch.setattr(
        "tflq.engine.jit.building.build", lambda *args, **words: built.append(args) or build(*args, **words)
    )

    def run(source: str = SOURCE) -> tuple[int, str]:
        names: dict[str, Any] = {"__name__": __name__}
        exec(source, names)
        built.clear()
        value = names["outer"](20)
        assert len(built) <= 1
        return value, "compiled" if built else "loaded"

    return run


def test_machine_code_is_used_again(run: Any) -> None:
    assert run() == COMPILED
    assert run() == LOADED


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("np.arange(100)", "np.where(np.arange(100) == 20, 7, 0)", 47),
        ("FACTOR = 2", "FACTOR = 3", 80),
        ("n * FACTOR", "n * FACTOR + 1", 61),
        ("inner(n) +", "[inner(i) + 1 for i in (n, n)][0] +", 61),
    ],
    ids=["an element of a table", "a constant of a callee", "a callee", "itself"],
)
def test_machine_code_of_other_source_is_not_used(run: Any, old: str, new: str, value: int) -> None:
    run()
    assert run(SOURCE.replace(old, new)) == (value, "compiled")
    assert run() == LOADED


def test_machine_code_with_bounds_checks_is_kept_apart(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    processors.stamp.cache_clear()
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_BOUNDSCHECK", "1")
        assert run() == COMPILED
    processors.stamp.cache_clear()
    assert run() == LOADED


def test_damaged_machine_code_is_compiled_again(run: Any, folder: CodeFolder) -> None:
    run()
    entries = list(folder.path.iterdir())
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:100])
    assert run() == COMPILED
    assert run() == LOADED


def test_an_entry_that_is_no_machine_code_is_compiled_again(run: Any, folder: CodeFolder) -> None:
    run()
    for entry in list(folder.path.iterdir()):
        entry.unlink()
        folder.write(entry.name, b"no code")
    assert run() == COMPILED
    assert run() == LOADED


def globals_read(code: CodeType) -> set[str]:
    """The names that a function, or one within it, looks up in its module; attributes are none of them."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(globals_read(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def test_the_digest_covers_every_global_that_compiled_functions_read() -> None:
    """Else a change of one would leave machine code behind that is wrong."""
    functions = {
        value
        for module in pkgutil.walk_packages(tflq.__path__, "tflq.")
        if not module.name.startswith("tflq.engine.runtimes.")  # programs of their own
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, compiled.Compiled)
    }
    assert len(functions) > 100
    for function in functions:
        read = {name: function.python.__globals__.get(name, np) for name in globals_read(function._code)}
        modules = {name for name, value in read.items() if isinstance(value, ModuleType)}
        bound_later = {name for name, value in read.items() if value is None}  # see Compiled.bind
        assert read.keys() - modules - bound_later <= function._globals().keys(), function
        assert function.python.__closure__ is None, function


# --- processes --------------------------------------------------------------------------------------------------------

PROGRAM = "from tflq.engine.numerics.rounding import divide_by_pot_half_away as f; print(f(21, 1))"


def start(**environment: str) -> subprocess.Popen[str]:
    """A process that needs machine code; an empty word stands for a variable that is not set."""
    own = {name: value for name, value in {**os.environ, **environment}.items() if value}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=pipe, stderr=pipe, text=True, env=own)


def told(process: subprocess.Popen[str]) -> str:
    """What it says besides its result."""
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, "11\n"), err
    return err


@pytest.mark.slow
def test_processes_that_compile_at_once(tmp_path: Path) -> None:
    started = [start(NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    assert [told(process) for process in started] == [""] * 3
    folder = CodeFolder(tmp_path / "tflq" / "machine-code")
    names = os.listdir(folder.path)
    assert names
    assert all(folder.read(name) for name in names)


@posix
def test_it_is_said_in_one_line_that_nothing_is_kept(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    reason, _, advice = told(start(NUMBA_CACHE_DIR=str(tmp_path))).partition("; ")
    assert reason.startswith("tflq: machine code is not kept: everybody can write to a folder above ")
    assert advice == "set NUMBA_CACHE_DIR to a folder that only you can write to\n"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the custom of other systems")
def test_where_the_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    code_folder = code_store.code_folder.__wrapped__
    assert code_folder().path == tmp_path / ".cache/tflq/machine-code"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert code_folder().path == tmp_path / ".cache/tflq/machine-code"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert code_folder().path == tmp_path / "xdg/tflq/machine-code"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert code_folder().path == tmp_path / "numba/tflq/machine-code"


def test_no_home_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "gone"))
    folder = code_store.code_folder.__wrapped__()
    folder.write("f", b"machine code")
    assert folder.read("f") is None
    assert "there is no home folder" in caplog.text
    assert not (tmp_path / "gone").exists()
