"""load and save: paths, bytes, what cannot be read, and files that appear complete or not at all."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import tflq
from support import suites
from tflq.errors import FileAccessError, FormatError, LimitError
from tflq.model.flatbuf import ReadLimits, read, write
from tflq.model.flatbuf.writer import file_size, parts
from tflq.model.ir import view

PATH = next((suites.ROOT / "golden" / "singleop").rglob("conv*.tflite"))


def names(model: tflq.Model) -> list[str | None]:
    return [tensor.name for tensor in view(model).tensors]


@pytest.mark.parametrize(
    "source",
    [
        PATH,
        str(PATH),
        PATH.read_bytes(),
        bytearray(PATH.read_bytes()),
        memoryview(PATH.read_bytes()),
        np.fromfile(PATH, np.uint8),
        memoryview(b"." + PATH.read_bytes())[1:],
    ],
    ids=["Path", "str", "bytes", "bytearray", "memoryview", "ndarray", "odd address"],
)
def test_every_source_gives_the_same_model(source: tflq.engine.api.files.Source) -> None:
    assert names(tflq.load(source)) == names(tflq.load(PATH))
    assert tflq.save(tflq.load(source)) == tflq.save(tflq.load(PATH))


def test_a_model_is_its_own_source() -> None:
    model = tflq.load(PATH)
    assert tflq.load(model) is model


def test_constants_are_views_of_the_bytes() -> None:
    data = PATH.read_bytes()
    whole = np.frombuffer(data, np.uint8)
    stored = [buffer.data for buffer in tflq.load(data).buffers if buffer.data is not None and buffer.data.size]
    assert stored
    assert all(np.shares_memory(array, whole) and not array.flags.writeable for array in stored)


def test_changing_a_bytearray_does_not_change_the_model() -> None:
    data = bytearray(PATH.read_bytes())
    model = tflq.load(data)
    before = tflq.save(model)
    data[:] = bytes(len(data))
    assert tflq.save(model) == before


def test_changing_memory_behind_a_read_only_view_does_not_change_the_model() -> None:
    data = bytearray(PATH.read_bytes())
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    model = tflq.load(memoryview(array))
    before = tflq.save(model)
    data[:] = bytes(len(data))
    assert tflq.save(model) == before


@pytest.mark.parametrize("path", ["no/such/file.tflite", ".", "null\0character", ""])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(FileAccessError) as error:
        tflq.load(path)
    assert isinstance(error.value, OSError)
    assert str(error.value).startswith(error.value.path)


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(FormatError):
        tflq.load(tmp_path / "empty.tflite")


@pytest.mark.parametrize("source", [None, 3, 2.5, ["a"], object()])
def test_what_is_no_source_is_a_type_error(source: object) -> None:
    with pytest.raises(TypeError):
        tflq.load(source)  # type: ignore[arg-type]


def test_save_writes_what_it_returns(tmp_path: Path) -> None:
    size = tflq.save(tflq.load(PATH), tmp_path / "out.tflite")
    assert (tmp_path / "out.tflite").read_bytes() == tflq.save(tflq.load(PATH))
    assert size == (tmp_path / "out.tflite").stat().st_size
    assert os.listdir(tmp_path) == ["out.tflite"]


def test_save_replaces_the_file_it_was_loaded_from(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(PATH.read_bytes())
    if os.name == "posix":
        path.chmod(0o640)
    model = tflq.load(path)
    tflq.save(model, path)
    assert names(tflq.load(path)) == names(model)
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["missing/out.tflite", "null\0character"])
def test_save_where_nothing_can_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileAccessError):
        tflq.save(tflq.load(PATH), tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileAccessError, match="No space left"):
        tflq.save(tflq.load(PATH), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.tflite"]


def test_a_file_that_would_be_refused_does_not_appear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.tflite").write_bytes(b"old")
    monkeypatch.setattr("tflq.model.flatbuf.writer.read", partial(read, limits=ReadLimits(tables=3)))
    with pytest.raises(LimitError, match="the file would be refused"):
        tflq.save(tflq.load(PATH), tmp_path / "m.tflite")
    assert os.listdir(tmp_path) == ["m.tflite"]
    assert (tmp_path / "m.tflite").read_bytes() == b"old"


def test_constants_outside_the_tables_are_written_from_where_they_are() -> None:
    model = tflq.load(PATH)
    pieces = parts(model, max_inside=0)
    constants = [b.data for b in model.buffers if b.data is not None and b.data.size]
    assert all(any(np.shares_memory(c, np.frombuffer(p, np.uint8)) for p in pieces) for c in constants)
    assert b"".join(pieces) == write(model, max_inside=0)
    assert file_size(model) == len(write(model))
