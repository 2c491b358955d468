"""Options of custom operators: what of a FlexBuffers map is read, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from flatbuffers import flexbuffers

from tflq.engine.kernels.families.custom_options import Options, flag, option_integer, options_of, real
from tflq.engine.kernels.kernel import Node
from tflq.errors import ModelError
from tflq.model.ir import Record


def options(data: bytes) -> Options:
    return options_of(Node("Custom", 1, 0, (), (), Record("", {}), custom_options=data))


def dumped(**values: Any) -> Options:
    return options(bytes(flexbuffers.Dumps(values)))


def test_numbers_of_all_kinds() -> None:
    read = dumped(a=7, b=-3, c=2.75, d=True, e=2**40, f=None)
    assert [option_integer(read, name, 9) for name in "abcdefg"] == [7, -3, 2, 1, 2**40, 0, 9]
    assert [real(read, name) for name in "acdg"] == [7.0, 2.75, 1.0, 0.0]
    assert [flag(read, name) for name in "adfg"] == [True, True, False, False]


@pytest.mark.parametrize("value", ["12", [1, 2], {"x": 1}, b"blob"], ids=["text", "vector", "map", "blob"])
def test_what_is_no_number_is_refused_when_it_is_asked_for(value: Any) -> None:
    read = dumped(size=value, other=5)
    assert option_integer(read, "other") == 5
    with pytest.raises(ModelError, match="custom option size is no number"):
        option_integer(read, "size")


def test_infinite_integers_are_refused() -> None:
    with pytest.raises(ModelError, match="an integer, got inf"):
        option_integer(dumped(size=float("inf")), "size")


@pytest.mark.parametrize("data", [b"", b"\0", b"\1\4\1", bytes(flexbuffers.Dumps([1, 2])), bytes(range(256))])
def test_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match=r"custom option"):
        option_integer(options(data), "size")


def test_what_a_map_points_to_besides_is_not_unfolded() -> None:
    """Each of 60 vectors holds the one below it twice: 2**60 values, read as a tree."""
    read = options(doubling(60))
    assert option_integer(read, "size") == 5
    with pytest.raises(ModelError, match="custom option bomb is no number"):
        option_integer(read, "bomb")


def doubling(levels: int) -> bytes:
    """{"bomb": vectors of vectors, "size": 5}, all of it four bytes wide."""
    integer_type, map_type, vector_type = 4 * 1 + 2, 4 * 9 + 2, 4 * 10 + 2
    data = bytearray(b"bomb\0\0\0\0size\0\0\0\0")

    def number(value: int) -> None:
        data.extend(value.to_bytes(4, "little"))

    def pointer(place: int) -> None:
        number(len(data) - place)

    number(2)
    keys = len(data)
    pointer(0)
    pointer(8)
    number(2)
    vector = len(data)
    number(1)
    number(1)
    data.extend([integer_type] * 2 + [0] * 2)
    for _ in range(levels):
        number(2)
        start = len(data)
        pointer(vector)
        pointer(vector)
        data.extend([vector_type] * 2 + [0] * 2)
        vector = start
    pointer(keys)
    number(4)
    number(2)
    start = len(data)
    pointer(vector)
    number(5)
    data.extend([vector_type, integer_type, 0, 0])
    pointer(start)
    return bytes(data) + bytes([map_type, 4])
