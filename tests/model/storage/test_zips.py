"""Damaged zip bundles: every mutation is read right or refused as a golden, never a fault."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tflq.comparison.goldens.golden import Golden, InputFacts, Observation
from tflq.comparison.goldens.stored import load_golden, model_of, save_golden
from tflq.errors import FileAccessError, GoldenError

LOCAL, CENTRAL, END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
#: Fields of both kinds of headers: place and size, and of the end of the directory.
FIELDS = {
    LOCAL: ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
    CENTRAL: ((6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (34, 2), (42, 4)),
    END: ((4, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
}
NUMBERS = (0, 1, 2, 3, 6, 8, 9, 12, 14, 19, 64, 93, 97, 99, 255, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)
NAMES = ("manifest.json", "samples.jsonl", "/manifest.json", "../manifest.json", "data/../manifest.json", "a" * 300)


def bundle(folder: Path) -> bytes:
    rng = np.random.default_rng(0)
    observations = tuple(
        Observation((rng.integers(-9, 9, (4, 9), np.int8),), (rng.standard_normal((3,), np.float32),)) for _ in range(3)
    )
    save_golden([Golden(observations, False, InputFacts("random", 0, 3), {}, "0" * 64)], folder / "whole.zip")
    return (folder / "whole.zip").read_bytes()


def renamed(data: bytes, rng: np.random.Generator) -> bytes:
    """The archive with an entry under another name, or twice."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        chosen = rng.integers(len(old.infolist()))
        for number, info in enumerate(old.infolist()):
            name = NAMES[rng.integers(len(NAMES))] if number == chosen else info.filename
            new.writestr(name, old.read(info))
    return target.getvalue()


def recompressed(data: bytes, rng: np.random.Generator) -> bytes:
    """The archive with entries of another method, and one whose content is a bomb, empty or noise."""
    target = io.BytesIO()
    contents = (b"", b"\n" * (1 << 20), bytes(1 << 20), rng.bytes(100), b"[" * 100000, b"{}\n" * 1000)
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        chosen = rng.integers(len(old.infolist()))
        for number, info in enumerate(old.infolist()):
            content = contents[rng.integers(len(contents))] if number == chosen else old.read(info)
            new.writestr(info.filename, content, (0, 8, 12, 14)[rng.integers(4)])
    return target.getvalue()


def mutation(data: bytes, rng: np.random.Generator) -> bytes:
    kind = rng.integers(6)
    if kind == 4:
        return renamed(data, rng) if rng.integers(4) == 0 else data[rng.integers(len(data)) :]
    if kind == 5:
        return recompressed(data, rng) if rng.integers(4) == 0 else data + rng.bytes(rng.integers(1, 100))
    changed = bytearray(data)
    if kind == 0:
        for at in rng.integers(len(data), size=rng.integers(1, 8)):
            changed[at] ^= 1 << rng.integers(8)
    elif kind == 1:
        del changed[rng.integers(len(data)) :]
    elif kind == 2:
        first = rng.integers(len(data))
        del changed[first : first + rng.integers(1, 50)]
    else:
        for _ in range(rng.integers(1, 3)):
            mark = (LOCAL, CENTRAL, CENTRAL, END)[rng.integers(4)]
            places = [at for at in range(len(data)) if data.startswith(mark, at)]
            at = places[rng.integers(len(places))]
            offset, size = FIELDS[mark][rng.integers(len(FIELDS[mark]))]
            number = NUMBERS[rng.integers(len(NUMBERS))] & ((1 << 8 * size) - 1)
            struct.pack_into("<H" if size == 2 else "<I", changed, at + offset, number)
    return bytes(changed)


def is_refused(path: Path) -> bool:
    """Read everything. Any error other than the typed ones ends the test."""
    try:
        model_of(path)
        for observation in load_golden(path).observations:
            assert observation.inputs
    except (GoldenError, FileAccessError):
        return True
    return False


def mutated(tmp_path: Path, seed: int, count: int) -> int:
    """Return how many of the mutations are refused."""
    data, rng, place, refused = bundle(tmp_path), np.random.default_rng(seed), tmp_path / "changed.zip", 0
    assert not is_refused(tmp_path / "whole.zip")
    for _ in range(count):
        place.write_bytes(mutation(data, rng))
        refused += is_refused(place)
    return refused


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_mutations_are_refused(tmp_path: Path) -> None:
    assert mutated(tmp_path, 0, 500) > 200


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_many_mutations_are_refused(tmp_path: Path) -> None:
    assert mutated(tmp_path, 1, 10_000) > 5_000


def changed(path: Path, **files: bytes) -> Path:
    """The archive with other content of the files."""
    target = path.parent / "other.zip"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, files.get(info.filename.partition(".")[0], old.read(info)))
    return target


@pytest.mark.parametrize("name", ["manifest", "samples"])
def test_ten_million_empty_lines_are_not_kept(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(tmp_path)
    place = changed(tmp_path / "whole.zip", **{name: b"\n" * (10 << 20)})
    assert place.stat().st_size < 20_000
    lines = []
    read = io.BufferedReader.readline

    class Counted(io.BufferedReader):
        def readline(self, size: int | None = -1, /) -> bytes:
            lines.append(size)
            return read(self, size)

    monkeypatch.setattr("tflq.model.storage.arrays.io.BufferedReader", Counted)
    with pytest.raises(GoldenError):
        load_golden(place)
    assert len(lines) < 10


def test_more_rows_than_the_manifest_names_are_not_read(tmp_path: Path) -> None:
    bundle(tmp_path)
    row = b'{"inputs":[],"outputs":[],"tensors":{}}\n'
    with pytest.raises(GoldenError, match="got more"):
        load_golden(changed(tmp_path / "whole.zip", samples=row * 100))
