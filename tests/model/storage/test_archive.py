"""Archives of arrays: any name is kept, nothing is believed, and only what is asked for is unpacked."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflq.errors import FileAccessError, InputError, LimitError
from tflq.model.storage import arrays as archive
from tflq.model.storage.arrays import MANIFEST, load_array, load_rows, opened, write_arrays

NAMES = (
    "file",
    "allow_pickle",
    "args",
    "arr_0",
    "x",
    "../../etc/x",
    "/abs",
    "a/../b",
    "a/b;c:0",
    "..",
    "a..b/c",
    "\x1b]0;x\x07",
    "nul\0",
    "\ud800",
    "\udcff",
    "x" * 70000,
    "",
    MANIFEST,
    "name_5",
    "äöü",
    "x.npy",
    "a\\..\\b",
    "two\nlines",
    ".",
    "\u202eright",
    "s0_out0",
)


@pytest.mark.parametrize("compress", [True, False])
def test_every_name_comes_back(tmp_path: Path, compress: bool) -> None:
    arrays = {name: np.arange(i) for i, name in enumerate(NAMES)}
    keys = write_arrays(tmp_path / "a.npz", arrays, compress=compress)
    with opened(tmp_path / "a.npz") as found:
        assert set(found) == set(NAMES)
        for name, array in arrays.items():
            assert np.array_equal(found[name], array)
            assert found.header(name).shape == array.shape
    with np.load(tmp_path / "a.npz") as seen:  # other readers find all arrays, and their names
        assert set(seen.files) == {*keys.values(), MANIFEST}
        names = json.loads(seen[MANIFEST].tobytes())
        assert all(names.get(key, key) == name for name, key in keys.items())


def keys_of(path: Path, names: Iterable[str]) -> dict[str, str]:
    return write_arrays(path, ((name, np.zeros(1)) for name in names))


def test_keys_are_safe_as_files(tmp_path: Path) -> None:
    keys = keys_of(tmp_path / "a.npz", NAMES)
    assert len(set(keys.values())) == len(NAMES)
    for key in keys.values():
        assert key.isprintable()
        assert key not in (MANIFEST, "")
        assert len(key.encode()) <= 240
        assert not key.startswith("/")
        assert not {"..", "."} & set(key.replace("\\", "/").split("/"))
    for usual in ("file", "allow_pickle", "a/b;c:0", "äöü", "s0_out0", "serving_default_x:0"):
        assert keys_of(tmp_path / "a.npz", [usual]) == {usual: usual}
    clash = keys_of(tmp_path / "a.npz", ["..", "name_1", "name_1_"])
    with opened(tmp_path / "a.npz") as found:
        assert set(found) == set(clash)


@pytest.mark.parametrize(
    "array",
    [
        np.array(True),
        np.zeros((0, 3), ">f4"),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array([b"a", b"bc"]),
        np.array(["a", "bc"]),
        np.array(1 + 2j),
        np.float16([1, np.nan]),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_as_numpy_reads_them(tmp_path: Path, array: Any) -> None:
    np.savez(tmp_path / "a.npz", x=array)
    np.save(tmp_path / "a.npy", array)
    expected = np.load(tmp_path / "a.npz")["x"]
    with opened(tmp_path / "a.npz") as found:
        got = found["x"]
        if array.ndim:
            rows = list(found.rows("x"))
            assert len(rows) == len(expected)
            assert all(row.dtype == expected.dtype for row in rows)
            assert all(
                np.array_equal(row, other, equal_nan=row.dtype.kind in "fc")
                for row, other in zip(rows, expected, strict=True)
            )
    for value in (got, load_array(tmp_path / "a.npy")):
        assert (value.dtype, value.shape, value.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())
        assert value.flags.f_contiguous == expected.flags.f_contiguous
    if array.ndim:
        assert len(list(load_rows(tmp_path / "a.npy"))) == len(array)


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY" + version + len(text).to_bytes(2 if version[0] == 1 else 4, "little") + text + data


def header(shape: str, dtype: str = "'<f4'", order: str = "False") -> str:
    return f"{{'descr': {dtype}, 'fortran_order': {order}, 'shape': {shape}, }}"


BROKEN = {
    "nothing": b"",
    "no array": b"PK\x03\x04",
    "version": npy(header("(1,)"), bytes(4), b"\x09\x00"),
    "short": npy(header("(3,)"), bytes(8)),
    "petabytes": npy(header("(1000000, 1000000, 1000)"), bytes(8)),
    "beyond 64 bits": npy(header("(1000000000000000000, 1000000000000000000)")),
    "negative": npy(header("(-1, 4)"), bytes(8)),
    "empty rows": npy(header("(1000000000000, 0)")),
    "empty text": npy(header("(1000000000000,)", "'S0'")),
    "objects": npy(header("(1,)", "'|O'"), bytes(8)),
    "objects in records": npy(header("(1,)", "[('a', '|O')]"), bytes(8)),
    "nested": npy("(" * 4000),
    "long": npy(header("(1,)" + " " * 20000), bytes(4)),
    "dimensions": npy(header("(" + "1," * 100 + ")"), bytes(4)),
    "no type": npy(header("(1,)", "'zz'"), bytes(4)),
    "bool": npy(header("(1,)", "'<f4'", "7"), bytes(4)),
    "code": npy("__import__('os').system('false')"),
    "keys": npy("{'descr': '<f4'}"),
    "not a dictionary": npy("[1, 2]"),
    "unhashable": npy("{[]: 1}"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_arrays_are_refused_before_memory_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.npy").write_bytes(BROKEN[name])
    with pytest.raises(InputError):
        load_array(tmp_path / "a.npy")
    with pytest.raises(InputError):
        list(load_rows(tmp_path / "a.npy"))
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as file:
            file.writestr("x.npy", BROKEN[name])
            file.writestr("good.npy", npy(header("(1,)"), bytes(4)))
        with opened(tmp_path / "a.npz") as found:
            with pytest.raises(InputError):
                found["x"]
            assert found["good"].tolist() == [0]  # what is not asked for does not matter


def test_broken_archives_are_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    np.savez(whole, x=np.arange(1000))
    data = whole.getvalue()
    for cut in range(0, len(data), 97):
        (tmp_path / "a.npz").write_bytes(data[:cut])
        with pytest.raises(InputError), opened(tmp_path / "a.npz") as found:
            found["x"]
    for at in range(0, len(data), 13):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        (tmp_path / "a.npz").write_bytes(changed)
        try:
            with opened(tmp_path / "a.npz") as found:
                dict(found)
        except InputError:
            pass
    with pytest.raises(FileAccessError), opened(tmp_path / "missing.npz"):
        pass
    with pytest.raises(FileAccessError), opened(tmp_path):
        pass
    with pytest.raises(FileAccessError), opened("a\0b"):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_only_numpys_compression_is_read(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as file:
        file.writestr("x.npy", npy(header("(1,)"), bytes(4)))
    with opened(tmp_path / "a.npz") as found, pytest.raises(InputError, match="deflated"):
        found["x"]


def bomb(path: Path, entries: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for k in range(entries):
            file.writestr(f"x{k}.npy", npy(header("(1048576, )", "'|u1'"), bytes(1 << 20)))


def test_archives_unpack_in_proportion_to_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_BASE", 3 << 20)
    bomb(tmp_path / "a.npz", 5)
    with opened(tmp_path / "a.npz") as found:
        assert sum(found[f"x{k}"].size for k in range(3)) == 3 << 20
        with pytest.raises(LimitError, match="more than 3,145,728 bytes"):
            found["x3"]
    with opened(tmp_path / "a.npz", streamed=True) as found:
        assert sum(found[f"x{k}"].size for k in range(5)) == 5 << 20
    monkeypatch.setattr(archive, "_BASE", 1000)
    with opened(tmp_path / "a.npz", streamed=True) as found, pytest.raises(LimitError):
        found["x0"]


@pytest.mark.parametrize(
    "manifest",
    [b"{", b"[]", b"\xff", b'{"x": 5}', b'{"missing": "y"}', b'{"x": "y", "z": "y"}', b"[" * 100000, b'{"x": "w"}'],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path: Path, manifest: bytes) -> None:
    arrays = {name: np.zeros(1) for name in ("x", "z", "w")}
    np.savez(tmp_path / "a.npz", **arrays, **{MANIFEST: np.frombuffer(manifest, np.uint8)})
    with pytest.raises(InputError), opened(tmp_path / "a.npz"):
        pass


def test_objects_are_never_written(tmp_path: Path) -> None:
    with pytest.raises((ValueError, FileAccessError)):
        write_arrays(tmp_path / "a.npz", {"x": np.array([object()])})
    assert not list(tmp_path.iterdir())


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_arrays(tmp_path / name, {"x": np.arange(5), "\0": np.zeros(2)}, compress=True)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
