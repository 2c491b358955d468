from __future__ import annotations

import sys
from typing import Annotated, Literal, TypedDict

import make_schemas
import pytest

from support.each import each

if sys.version_info < (3, 11):
    pytest.skip("typing has NotRequired from Python 3.11 on", allow_module_level=True)


@each(("path", "text"), list(make_schemas.files()), ids=lambda value: getattr(value, "name", ""))
def test_the_published_schemas_are_those_of_the_types(path, text) -> None:
    assert path.read_text() == text


def test_every_schema_is_made_from_a_type() -> None:
    made = {path.name for path, _ in make_schemas.files()} | {"profile.schema.json"}  # by tools/profile_docs.py
    assert {path.name for path in make_schemas.FOLDER.glob("*.schema.json")} == made


class Inner(TypedDict):
    word: Annotated[str, ("enum", ("a", "b"))]


class Whole(TypedDict, total=False):
    """A document."""

    schema: Literal["tflq/whole/1"]
    inner: Inner | None
    counts: Annotated[list[int], "of each", ("minItems", 1)]


def test_descriptions_keywords_and_optional_keys() -> None:
    made = make_schemas.schema_of([Whole])
    assert made["title"] == "A document."
    assert "required" not in made
    assert made["properties"]["counts"] == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "of each",
        "minItems": 1,
    }
    assert made["properties"]["inner"] == {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}
    assert made["$defs"]["Inner"]["properties"]["word"] == {"enum": ["a", "b"]}
    assert made["$defs"]["Inner"]["additionalProperties"] is False
