"""What is read and written, field by field, against the reader that flatc generated from LiteRT's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from support import flatbuf_models as models
from support.suites import suite_models
from tflq.model.flatbuf import read, write
from tflq.model.flatbuf.binding import BINDINGS
from tflq.model.flatbuf.layout import FieldKind, layout, members
from tflq.model.ir import Buffer, Model


@pytest.fixture(scope="module")
def generated() -> Any:
    return pytest.importorskip("ai_edge_litert.schema_py_generated", reason="runtime missing: ai-edge-litert")


class Sink:
    """Keeps what lies outside the tables out of the comparison."""

    def inside(self, buffer: Buffer) -> bool:
        return not buffer.external

    def outside(self, data: Any) -> tuple[int, int]:
        return ANY, len(data)


ANY = -1


def disagreements(table: str, ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Fields of a table that the generated reader gives another value."""
    binding = BINDINGS.get(table)
    fields: Mapping[str, Any] = binding.store(ours, Sink()) if binding else ours.fields
    for name, field in layout(table).fields.items():
        if not hasattr(theirs, _camel(name)):
            continue  # deprecated fields are not generated
        value, other = fields.get(name, field.default), getattr(theirs, _camel(name))
        where = f"{path}.{name}"
        if name in ("deprecated_builtin_code", "builtin_code"):
            continue  # compared as one
        if field.kind is FieldKind.UNION:
            number = getattr(theirs, _camel(name) + "Type")
            if (members(field.target)[number] if number else None) != (value and value.table):
                yield f"{where}: type {number}"
            elif value is not None:
                yield from disagreements(value.table, value, other, where)
        elif field.kind is FieldKind.TABLE and value is not None and other is not None:
            yield from disagreements(field.target, value, other, where)
        elif field.kind is FieldKind.TABLES and value is not None and other is not None:
            if len(value) != len(other):
                yield f"{where}: {len(value)} != {len(other)}"
            for i, (x, y) in enumerate(zip(value, other, strict=False)):
                yield from disagreements(field.target, x, y, f"{where}[{i}]")
        elif not _same(value, other, field.kind):
            yield f"{where}: {value!r} != {other!r}"
    if table == "OperatorCode" and ours.builtin_code != max(theirs.builtinCode, theirs.deprecatedBuiltinCode):
        yield f"{path}.builtin_code"


def _same(value: Any, other: Any, kind: FieldKind) -> bool:
    if kind is FieldKind.STRING and value is not None and other is not None:
        return bool(value.encode("utf-8", "surrogateescape") == other)
    if kind is FieldKind.NUMBERS:
        # The generated reader gives None for an empty vector too in places, and where the vocabulary has only ().
        a, b = ([] if v is None else list(np.asarray(v).tolist()) for v in (_listed(value), _listed(other)))
        return a == b
    if kind is FieldKind.TABLES:
        return not value and not other
    return value is ANY or bool(value == other) or bool(value != value and other != other)


def _listed(value: Any) -> Any:
    return np.frombuffer(value, np.uint8) if isinstance(value, (bytes, memoryview)) else value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def compare(model: Model, content: bytes, generated: Any, name: str) -> list[str]:
    theirs = generated.ModelT.InitFromPackedBuf(bytearray(content))
    return list(disagreements("Model", model, theirs, name))


@pytest.mark.parametrize("suite", ["real", "zip", "singleop"])
def test_the_suites_are_read_as_litert_reads_them(suite: str, shared: Any, generated: Any) -> None:
    for case in suite_models(suite):
        content = case.model.read_bytes()
        assert not compare(read(content), content, generated, case.id)


@pytest.mark.parametrize("suite", ["real", "zip", "singleop"])
def test_what_is_written_is_read_so_too(suite: str, shared: Any, generated: Any) -> None:
    for case in suite_models(suite):
        model = read(case.model.read_bytes())
        assert not compare(model, write(model), generated, case.id)


@pytest.mark.parametrize("make", [models.leaky_relu, models.convolution, models.rich, models.outside])
def test_hand_made_models_are_read_as_litert_reads_them(make: Callable[[], Model], generated: Any) -> None:
    assert not compare(make(), write(make()), generated, "model")


def test_every_option_field_is_where_litert_expects_it(generated: Any) -> None:
    for model in models.option_models():
        assert not compare(model, write(model), generated, "model")
