"""Documents of others are plain values within bounds, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from support.each import each
from tflq.errors import InputError
from tflq.model.storage import documents
from tflq.model.storage.documents import read_json, read_yaml

SAME = (b'{"a": [1, 2.5, "x", null, true], "b": {}}', b"[]", b"5", b'""')


@pytest.mark.parametrize("data", SAME)
def test_plain_documents_are_read(data: bytes) -> None:
    assert read_json(data, "x") == read_yaml(data, "x")


ODD_JSON = (
    b"",
    b"{",
    b"\xff\xfe{",
    b"[" * 200000,
    b'{"a":' * 100000,
    b"1" * 5000,
    b"[" * 40 + b"]" * 40,
    b"123456789012345678901",
    b'{"a": 1',
)


@pytest.mark.parametrize("data", ODD_JSON, ids=lambda data: repr(data[:12]))
def test_other_json_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        read_json(data, "x")


ODD_YAML = (
    b"a: 2020-01-01",
    b"a: 2020-13-45",
    b"a: 2020-01-01T00:00:00Z",
    b"? [a]\n: 1",
    b"1: 2",
    b"<<: 5",
    b"a: !!python/none",
    b"a: !!binary aGk=",
    b"a: !!set {b}",
    b"&a [*a]",
    b"mode: &a {b: *a}",
    b"[" * 20000,
    b"\x1b: 1",
    b"\xff: 1",
    b"a: " + b"9" * 5000,
    b"a: 0x" + b"f" * 40,
    b"a: *b",
    b"a: b: c",
    b"a:\n\t- b",
    b"%YAML 9.9\n---\na: 1",
    b"--- 1\n--- 2",
    b"x" * (300 << 10),
    b"- " * 5000,
    b"{? " * 2000,
    b"a: !!int ''",
    b"a: !!float x",
    b"a: !!timestamp x",
)


@each("data", ODD_YAML, ids=lambda data: repr(data[:24]))
def test_other_yaml_is_refused(data: bytes) -> None:
    with pytest.raises(InputError) as found:
        read_yaml(data, "x")
    assert str(found.value).isprintable()


def test_what_looks_odd_may_be_plain() -> None:
    assert read_yaml(b"a: 1_0:99:99e\nb: 0o17", "x") == {"a": "1_0:99:99e", "b": "0o17"}


def test_repetitions_are_counted() -> None:
    lines = ["a: &a [1,1,1,1,1,1,1,1,1,1]"]
    for previous, name in zip("abcdefghi", "bcdefghij", strict=True):
        lines.append(f"{name}: &{name} [" + ",".join([f"*{previous}"] * 10) + "]")
    with pytest.raises(InputError, match="too many values"):
        read_yaml("\n".join(lines).encode(), "x")


def test_large_documents_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(documents.json, "loads", unexpected)
    with pytest.raises(InputError, match="too large"):
        read_json(bytes(documents.BYTES + 1), "x")
