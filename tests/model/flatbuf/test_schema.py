"""The schema data: consistent in itself, and the same as what LiteRT's own generated module says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from support.each import each
from tflq.model.flatbuf.layout import NUMBERS, FieldKind, layout, members
from tflq.model.ir import CARRIER, TensorType
from tflq.model.ir.model import enum, schema

TABLES = sorted(schema()["tables"])


@each("table", TABLES)
def test_slots_are_numbered_without_gaps(table: str) -> None:
    fields = layout(table).fields.values()
    slots = [f.id for f in fields] + [f.id - 1 for f in fields if f.kind is FieldKind.UNION]
    assert sorted(slots) == list(range(len(slots)))


@each("table", TABLES)
def test_types_exist_and_defaults_belong_to_them(table: str) -> None:
    known = {*NUMBERS, "string", *schema()["enums"], *schema()["unions"], *schema()["tables"]}
    for name, (_, type_name, *rest) in schema()["tables"][table].items():
        assert type_name.strip("[]") in known, name
        assert set(rest[0] if rest else ()) <= {"default", "align", "deprecated"}
    for field in layout(table).fields.values():
        if field.kind is FieldKind.SCALAR:
            assert field.number is not None
            assert field.number.packer.unpack(field.number.packer.pack(field.default)) == (field.default,)


def test_union_members_are_tables_and_enums_have_distinct_numbers() -> None:
    for union, names in schema()["unions"].items():
        assert names[0] == "NONE"
        assert len(set(names)) == len(names)
        assert all(name in schema()["tables"] for name in names[1:]), union
    for name, entry in schema()["enums"].items():
        numbers = list(entry["values"].values())
        assert len(set(numbers)) == len(numbers), name
        np.array(numbers, NUMBERS[entry["type"]].dtype)


def test_every_table_is_reached_from_the_root_and_none_holds_itself() -> None:
    reached: set[str] = set()

    def visit(table: str, above: tuple[str, ...]) -> None:
        assert table not in above
        reached.add(table)
        for field in layout(table).fields.values():
            targets = (
                members(field.target)[1:] if field.kind is FieldKind.UNION else [field.target] if field.target else []
            )
            for target in targets:
                visit(target, (*above, table))

    visit(schema()["root"], ())
    assert reached == set(TABLES)


def test_the_vocabulary_has_the_schemas_tensor_types() -> None:
    assert {t.name: int(t) for t in TensorType} == dict(enum("TensorType"))
    assert set(CARRIER) == set(TensorType)


# --- against the module that flatc generated from LiteRT's schema -----------------------------------------------------


@pytest.fixture(scope="module")
def generated() -> Any:
    return pytest.importorskip("ai_edge_litert.schema_py_generated", reason="runtime missing: ai-edge-litert")


def test_enums_and_unions_are_those_of_litert(generated: Any) -> None:
    ours = {name: dict(entry["values"]) for name, entry in schema()["enums"].items()}
    ours |= {name: {m: i for i, m in enumerate(names)} for name, names in schema()["unions"].items()}
    theirs = {name: _constants(value) for name, value in vars(generated).items() if isinstance(value, type)}
    theirs = {name: constants for name, constants in theirs.items() if constants}
    deprecated = {"BuiltinOperator": {"REDUCE_WINDOW": 205}, "BuiltinOptions2": {"ReduceWindowOptions": 20}}
    for name, values in deprecated.items():
        theirs[name] = {**values, **theirs[name]}
    assert ours == theirs


@each("table", TABLES)
def test_fields_are_those_of_litert(table: str, generated: Any) -> None:
    add = re.compile(rf"{table}Add([A-Z]\w*)$")
    theirs = {}
    for name, function in vars(generated).items():
        match = add.match(name)
        if match and getattr(generated, table + "End", None) and _belongs(table, name):
            recorder = _Recorder()
            function(recorder, 0)
            theirs[match[1]] = recorder.calls[0]
    assert theirs == _slots(table)


@each("table", TABLES)
def test_vectors_are_those_of_litert(table: str, generated: Any) -> None:
    for field in layout(table).fields.values():
        start = getattr(generated, f"{table}Start{_camel(field.name)}Vector", None)
        if field.kind is FieldKind.NUMBERS:
            assert field.number is not None
            assert start is not None
            recorder = _Recorder()
            start(recorder, 5)
            # The module for Python leaves the schema's force_align out: width and count only.
            assert recorder.calls[0][:3] == ("StartVector", field.number.size, 5)
        elif field.kind is FieldKind.TABLES:
            assert start is not None
        elif start is not None:
            pytest.fail(f"{field.name} is a vector")


def _belongs(table: str, name: str) -> bool:
    """Whether the function is this table's, not that of another whose name begins with this one's (Buffer, ...)."""
    longer = [t for t in TABLES if t.startswith(table) and name.startswith(t + "Add")]
    return longer == [table]


def _slots(table: str) -> dict[str, tuple[str, int, Any]]:
    """By the generated name: kind of slot, id, default; deprecated fields have none."""
    slots: dict[str, tuple[str, int, Any]] = {}
    for field in layout(table).fields.values():
        entry = schema()["tables"][table][field.name]
        if len(entry) > 2 and entry[2].get("deprecated"):
            continue
        name = _camel(field.name)
        if field.kind is FieldKind.SCALAR:
            assert field.number is not None
            slots[name] = field.number.name.capitalize(), field.id, field.default
        else:
            slots[name] = "UOffsetTRelative", field.id, 0
        if field.kind is FieldKind.UNION:
            slots[name + "Type"] = "Uint8", field.id - 1, 0
    return slots


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _constants(kind: type) -> dict[str, int]:
    return {n: v for n, v in vars(kind).items() if isinstance(v, int) and not n.startswith("_")}


class _Recorder:
    """A builder that notes which slot is written, as what, and with which default."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        kind = name.removeprefix("Prepend").removesuffix("Slot")
        return lambda slot, value, default: self.calls.append((kind, slot, default))

    def StartVector(self, width: int, count: int, alignment: int) -> None:
        self.calls.append(("StartVector", width, count, alignment))
