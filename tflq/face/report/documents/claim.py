"""The document of `tflq conform report`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import Printed


class ClaimDocument(Printed):
    """The output of `tflq conform report --json`: levels of conformance that a run meets."""

    schema: Literal["tflq/claim/1"]
    target: str
    levels_version: int
    met: Annotated[
        str | None,
        ("enum", ("smoke", "standard", "full", None)),
        "the highest level that is met with all levels below it",
    ]
    levels: list[LevelDocument]
    exclusions: list[ExclusionDocument]
    unused: Annotated[list[str], "exclusions that match no requirement"]


class LevelDocument(TypedDict):
    level: Annotated[str, ("enum", ("smoke", "standard", "full"))]
    is_met: bool
    passed: list[str]
    failed: list[str]
    without_case: list[str]
    excluded: list[str]


class ExclusionDocument(TypedDict):
    requirement: str
    reason: str
    date: str
