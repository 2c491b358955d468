"""Broken files: a typed error or a correct load, with bounded work and memory, whatever the bytes are."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from flatbuffers import Builder

from support import flatbuf_models as models
from support.flatbuf_structure import walk
from support.suites import suite_models
from support.work import at_most
from tflq.errors import FormatError, LimitError, TflqError
from tflq.model.flatbuf import ReadLimits, read, write
from tflq.model.ir import Model

MUTATIONS = 2_000  # of each model
MEBIBYTE = 1 << 20
#: What is broken: the smallest model always, the others where there is time.
MADE = [models.leaky_relu, *(pytest.param(m, marks=pytest.mark.slow) for m in (models.convolution, models.rich))]


def mutate(content: bytes, rng: random.Random) -> bytes:
    """One broken variant of a file."""
    kind = rng.randrange(6)
    size = len(content)
    if kind == 0:
        return content[: rng.randrange(size)]
    broken = bytearray(content)
    if kind == 1:
        for _ in range(rng.choice([1, 1, 2, 8, 64])):
            broken[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind == 2:  # offsets, counts and vtable distances live at multiples of 4: absurd ones
        at = rng.randrange(size // 4) * 4
        value = rng.choice([0, 1, 4, size, size - at, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - at, rng.getrandbits(32)])
        struct.pack_into("<I", broken, at, value % 2**32)
    elif kind == 3:  # plausible ones: they lead elsewhere in the file, as cycles and overlaps do
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.randrange(size // 4) * 4
            struct.pack_into("<i", broken, at, rng.randrange(size) // 4 * 4 - at)
    elif kind == 4:  # two-byte numbers: the contents of vtables
        for _ in range(rng.choice([1, 4])):
            at = rng.randrange(size // 2) * 2
            struct.pack_into("<H", broken, at, rng.choice([0, 2, 3, 4, 8, 255, 65535, rng.getrandbits(16)]))
    else:  # a piece of the file over another piece
        length = rng.randrange(1, min(64, size))
        source, target = rng.randrange(size - length), rng.randrange(size - length)
        broken[target : target + length] = content[source : source + length]
    return bytes(broken)


def check(content: bytes) -> bool:
    """Whether the bytes load; anything but a load or a typed error fails the test."""
    try:
        with at_most(_calls(content)):
            loaded = read(content)
    except TflqError:
        return False
    assert walk(loaded) > 0
    return True


def _calls(content: bytes) -> int:
    """How many functions reading these bytes may call: one for two bytes is usual where all of them are structure."""
    return 10_000 + 8 * len(content)


def run(content: bytes, seed: int, count: int) -> tuple[int, int]:
    rng = random.Random(seed)
    loads = sum(check(mutate(content, rng)) for _ in range(count))
    return loads, count - loads


@pytest.mark.parametrize("make", MADE)
def test_mutations_give_a_typed_error_or_a_load(make: Callable[[], Model]) -> None:
    loads, errors = run(write(make()), 2026, MUTATIONS)
    assert loads > 100
    assert errors > 100


def test_mutations_of_converted_models_too(shared: object) -> None:
    cases = [case for case in suite_models("singleop") if case.model.stat().st_size < 8_000][::40]
    assert cases
    for case in cases:
        run(case.model.read_bytes(), 1, 250)


@pytest.mark.parametrize("make", MADE)
def test_mutations_keep_within_the_memory_bound(make: Callable[[], Model]) -> None:
    content, rng = write(make()), random.Random(7)
    read(content)  # what is compiled once is not part of it
    for _ in range(400):
        _peak(mutate(content, rng))


def test_every_truncation_is_refused() -> None:
    content = write(models.leaky_relu())
    whole = len(content)
    for size in range(whole - 16):
        assert not check(content[:size]), size


# --- files made to cost much ------------------------------------------------------------------------------------------


def _peak(content: bytes, limits: ReadLimits | None = None) -> str:
    """What reading says, which must keep to the bounds on memory and work."""
    tracemalloc.start()
    said = "loads"
    try:
        with at_most(_calls(content)):
            read(content, limits or ReadLimits())
    except TflqError as error:
        said = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # Above 800 KB a file that is all structure may take more, in proportion.
    assert peak <= max(4 * len(content) + 16 * MEBIBYTE, 24 * len(content))
    return said


def _file(fields: Callable[[Builder], Iterator[tuple[int, int]]], size: int = 1 << 20) -> bytes:
    """A Model table whose offset fields `fields` builds, as (slot, offset)."""
    builder = Builder(size)
    built = list(fields(builder))
    builder.StartObject(10)
    for slot, offset in built:
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.Finish(builder.EndObject(), file_identifier=b"TFL3")
    return bytes(builder.Output())


def _tables(builder: Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in offsets:
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def test_one_table_in_many_places_is_read_once() -> None:
    def fields(builder: Builder) -> Iterator[tuple[int, int]]:
        name = builder.CreateString("n" * 1000)
        builder.StartObject(5)
        builder.PrependUOffsetTRelativeSlot(4, name, 0)
        yield 2, _tables(builder, [builder.EndObject()] * 100_000)

    content = _file(fields)
    assert _peak(content) == "loads"
    subgraphs = read(content).subgraphs
    assert len(subgraphs) == 100_000
    assert all(subgraph is subgraphs[0] for subgraph in subgraphs)


@pytest.mark.slow
def test_many_subgraphs_over_one_list_of_many_tensors() -> None:
    # 5,000 subgraphs share a list of 50,000 tensors: 250 million places, were each of them looked at.
    def fields(builder: Builder) -> Iterator[tuple[int, int]]:
        builder.StartObject(3)
        builder.PrependInt8Slot(1, 9, 0)
        tensors = _tables(builder, [builder.EndObject()] * 50_000)
        subgraphs = []
        for _ in range(5_000):
            builder.StartObject(1)
            builder.PrependUOffsetTRelativeSlot(0, tensors, 0)
            subgraphs.append(builder.EndObject())
        yield 2, _tables(builder, subgraphs)

    assert "too much for a file of" in _peak(_file(fields))


def test_many_tensors_over_one_long_shape() -> None:
    def fields(builder: Builder) -> Iterator[tuple[int, int]]:
        import numpy as np

        shape = builder.CreateNumpyVector(np.full(50_000, 1000, np.int32))
        tensors = []
        for _ in range(1_000):
            builder.StartObject(1)
            builder.PrependUOffsetTRelativeSlot(0, shape, 0)
            tensors.append(builder.EndObject())
        vector = _tables(builder, tensors)
        builder.StartObject(1)
        builder.PrependUOffsetTRelativeSlot(0, vector, 0)
        yield 2, _tables(builder, [builder.EndObject()])

    assert "too much for a file of" in _peak(_file(fields))


@pytest.mark.slow
def test_many_tables_with_a_wide_description_of_unknown_fields() -> None:
    def fields(builder: Builder) -> Iterator[tuple[int, int]]:
        buffers = []
        for _ in range(2_000):
            builder.StartObject(1_000)
            for slot in range(3, 1_000):
                builder.Slot(slot)
            builder.PrependUint8(1)
            for slot in range(3, 1_000):
                builder.Slot(slot)
            buffers.append(builder.EndObject())
        yield 4, _tables(builder, buffers)

    assert "too much for a file of" in _peak(_file(fields))


@pytest.mark.parametrize("count", [1_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (20_000, 100_000))])
def test_dense_files_keep_within_the_bound(count: int) -> None:
    def fields(builder: Builder) -> Iterator[tuple[int, int]]:
        entries = []
        for i in range(count):
            builder.StartObject(2)
            builder.PrependUint32Slot(1, i + 1, 0)
            entries.append(builder.EndObject())
        yield 6, _tables(builder, entries)

    said = _peak(_file(fields, 1 << 24))
    assert said == "loads" or "too much for a file of" in said


# --- what is refused, and where ---------------------------------------------------------------------------------------


def test_a_file_of_another_kind_is_refused() -> None:
    content = bytearray(write(models.leaky_relu()))
    content[4:8] = b"TFL2"
    with pytest.raises(FormatError, match=r"not a \.tflite file.*TFL2.*byte 4"):
        read(bytes(content))
    for short in (b"", b"TFL3", b"\x08\0\0\0TFL3"):
        with pytest.raises(FormatError):
            read(short)


def test_an_error_says_byte_table_and_field() -> None:
    content = bytearray(write(models.leaky_relu()))
    place = content.index(b"made by hand") - 4
    struct.pack_into("<I", content, place, 1 << 30)
    with pytest.raises(FormatError) as caught:
        read(bytes(content))
    assert (caught.value.offset, caught.value.table, caught.value.field) == (place, "Model", "description")


@pytest.mark.parametrize(
    "limits",
    [
        ReadLimits(file_size=100),
        ReadLimits(tables=3),
        ReadLimits(elements=2),
        ReadLimits(depth=2),
        ReadLimits(memory=2_000),
    ],
)
def test_limits_are_kept(limits: ReadLimits) -> None:
    content = write(models.convolution())
    assert read(content)
    with pytest.raises(LimitError):
        read(content, limits)


def test_outside_bytes_beyond_the_file_are_refused() -> None:
    content = write(models.outside())
    assert read(content)
    with pytest.raises(FormatError, match=r"reach beyond the file's end"):
        read(content[:-100])


def test_what_is_no_bytes_is_a_wrong_call() -> None:
    with pytest.raises(TypeError):
        read("model.tflite")  # type: ignore[arg-type]
