from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import pytest

from tflq.face.report.documents.filling import NONE, SELF, IfAny, Of, filled

if TYPE_CHECKING:
    from typing import NotRequired


class Colour(Enum):
    RED = "red"


class Inner(TypedDict):
    colour: Colour
    shape: list[int]


class Outer(TypedDict):
    proved: Annotated[bool, Of("is_proved")]
    reason: str | None
    inner: Inner | None
    parts: list[Inner]
    named: dict[str, Inner]


@dataclass
class Part:
    colour: Colour
    shape: tuple[int, ...]


@dataclass
class Whole:
    is_proved: bool
    reason: str
    inner: Part | None
    parts: tuple[Part, ...]
    named: dict[str, Part]


RED = Part(Colour.RED, (1, 2))


def test_every_key_holds_its_attribute_in_the_form_of_its_annotation() -> None:
    found = filled(Outer, Whole(True, "", None, (RED,), {"a": RED}), inner=None)
    red = {"colour": "red", "shape": [1, 2]}
    assert found == {"proved": True, "reason": None, "inner": None, "parts": [red], "named": {"a": red}}
    assert filled(Outer, Whole(False, "why", RED, (), {}), reason="given")["reason"] == "given"
    assert filled(Outer, Whole(False, "why", RED, (), {}))["inner"] == red


def test_an_attribute_that_is_missing_is_an_error() -> None:
    with pytest.raises(AttributeError, match="named"):
        filled(Outer, RED, proved=True, reason=None, inner=None, parts=[])


class Counts(TypedDict):
    parts: int


class Report(TypedDict):
    schema: Literal["tflq/report/1"]
    counts: Annotated[Counts, SELF]
    colour: Annotated[Colour, Of("inner.colour")]
    author: NotRequired[Annotated[str, IfAny("reason")]]
    parts: NotRequired[Annotated[str, NONE]]
    inner: Inner


def test_a_key_has_its_only_text_the_object_itself_or_an_attribute_of_an_attribute() -> None:
    whole = Whole(True, "", RED, (), {})
    whole.parts = 7  # type: ignore[assignment]
    red = {"colour": "red", "shape": [1, 2]}
    assert filled(Report, whole) == {"schema": "tflq/report/1", "counts": {"parts": 7}, "colour": "red", "inner": red}


def test_a_key_that_is_not_required_is_left_out_unless_it_is_given_or_has_something() -> None:
    whole = Whole(True, "somebody", RED, (), {})
    assert filled(Report, whole)["author"] == "somebody"
    assert "parts" not in filled(Report, whole)
    assert filled(Report, whole, parts="all")["parts"] == "all"


def test_values_in_place_of_attributes_get_the_form_of_their_annotation() -> None:
    red = {"colour": "red", "shape": [1, 2]}
    given = filled(Outer, None, proved=True, reason="", inner=RED, parts=(RED, red), named={})
    assert given == {"proved": True, "reason": None, "inner": red, "parts": [red, red], "named": {}}
