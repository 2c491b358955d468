"""Functions that are written as LLVM code, by address: emitted, kept, shipped, damaged, refused."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tflq.engine.jit import code_store, native, processors
from tflq.engine.jit import code_store as code_cache
from tflq.engine.jit import code_store as shipped
from tflq.engine.jit.building import CollectingCollection, emit
from tflq.engine.jit.compiled import compiling_is_off, heard
from tflq.engine.jit.images import Image, MachineCode, load
from tflq.engine.jit.native import Unavailable, address_of

pytestmark = pytest.mark.skipif(compiling_is_off(), reason="there is no machine code where the source runs as Python")


def _storing(value: int) -> Any:
    """Return what writes a function that stores a number at an address."""

    def write(module: Any, name: str) -> None:
        from llvmlite import ir

        word = ir.IntType(64)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [word.as_pointer()]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        builder.store(word(value), function.args[0])
        builder.ret_void()

    return write


def _calling(callee: str) -> Any:
    """Return what writes a function that calls another one, which is not in the module."""

    def write(module: Any, name: str) -> None:
        from llvmlite import ir

        kind = ir.FunctionType(ir.VoidType(), [])
        function = ir.Function(module, kind, name)
        builder = ir.IRBuilder(function.append_basic_block())
        builder.call(ir.Function(module, kind, callee), [])
        builder.ret_void()

    return write


def _never(module: Any, name: str) -> None:
    raise AssertionError("the code is there, so it is not written again")


def _stored(address: int) -> int:
    word = ctypes.c_int64(0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(word))
    return word.value


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new folder of machine code, without any that is shipped or loaded."""
    path = tmp_path / "code"
    kept = code_cache.CodeFolder(path)
    monkeypatch.setattr(code_store, "code_folder", lambda: kept)
    monkeypatch.setattr(native, "_KNOWN", {})
    monkeypatch.setattr(shipped, "is_here", lambda: False)
    return path


def test_a_function_is_emitted_once_and_then_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with heard() as compilations:
        address = address_of("store", "7", _storing(7))
        assert address_of("store", "7", _never) == address
        assert address_of("store", "8", _storing(8)) != address
    assert compilations.functions == 2
    assert _stored(address) == 7
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(native, "_KNOWN", {})  # as in the next process
    with heard() as compilations:
        assert _stored(address_of("store", "7", _never)) == 7
    assert compilations.functions == 0


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
def test_damaged_code_is_emitted_again(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None) -> None:
    address_of("store", "7", _storing(7))
    (file,) = folder.iterdir()
    if damage is None:  # intact on the disk, but no machine code
        name, kept = file.name, code_store.code_folder()
        file.unlink()
        kept.write(name, b"garbage")
    else:
        file.write_bytes(damage)
    monkeypatch.setattr(native, "_KNOWN", {})
    assert _stored(address_of("store", "7", _storing(9))) == 9


def test_shipped_code_precedes_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address_of("store", "7", _storing(7))
    content = {shipped.name_of("store", "7"): emit(_storing(5)).packed(), shipped.name_of("store", "8"): b"damaged"}
    monkeypatch.setattr(shipped, "is_here", lambda: True)
    monkeypatch.setattr(shipped, "read", content.get)
    monkeypatch.setattr(native, "_KNOWN", {})
    assert _stored(address_of("store", "7", _never)) == 5
    assert _stored(address_of("store", "8", _storing(8))) == 8


def test_without_memory_for_code_there_is_no_address(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(body: object) -> int:
        raise OSError(13, "not permitted")

    monkeypatch.setattr(native, "load", refuse)
    with pytest.raises(Unavailable, match="not permitted"):
        address_of("store", "7", _storing(7))
    assert "cannot be loaded" in caplog.text


def test_a_function_that_calls_an_unknown_one_has_no_address(folder: Path) -> None:
    with pytest.raises(Unavailable, match="no_such"):
        address_of("call", "", _calling("no_such"))


@pytest.mark.parametrize("level", processors.LEVELS, ids=lambda level: level.name)
def test_code_for_every_level_is_an_image(level: processors.ProcessorLevel) -> None:
    body = emit(_storing(1 << 40), level).body
    assert isinstance(body, Image)
    assert not body.moved
    assert not body.slots


def test_a_collection_keeps_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a level that this machine lacks, functions are kept, and not loaded."""
    own, collection = processors.levels(), CollectingCollection.__new__(CollectingCollection)
    for is_own in (True, False):
        collection.entries, collection._level, collection._is_own = {}, own[0], is_own
        code = collection._collect("name", partial(emit, _storing(3)), is_written=True)
        assert list(collection.entries) == ["name"]
        assert (_stored(load(code.body)) == 3) if is_own else not code.body


def test_llvm_loads_object_files_where_images_cannot_be(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.engine.jit.processors.loads_images", lambda: False)
    made: list[MachineCode] = []
    monkeypatch.setattr(native, "_emit", lambda write, level: made.append(emit(write, level)) or made[-1])
    assert _stored(address_of("store", "4", _storing(4))) == 4
    assert isinstance(made[0].body, bytes)
