"""The document of `tflq court`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument
from tflq.face.report.documents.shared import BriefDifferenceDocument, ModelDocument, Printed


class CourtDocument(Printed):
    """The output of `tflq court` with --json: profiles and runtimes on one model."""

    schema: Literal["tflq/court/1"]
    verdict: Annotated[str, ("enum", ("same", "differs", "nothing compared"))]
    model: ModelDocument
    inputs: InputsDocument
    reference: Annotated[str, "the system that groups are compared with; empty: none ran"]
    groups: Annotated[
        list[GroupDocument],
        "systems with the same output bits: the reference's group first, then those of most systems",
    ]
    partings: Annotated[list[PartingDocument], "operators at which systems with the same inputs give other outputs"]
    alone: Annotated[list[str], "systems whose outputs no other system gives"]
    apart_from_profile: Annotated[list[str], "runtimes with other outputs than the profile of their name"]
    loose: Annotated[list[str], "profiles that promise less than every bit of the outputs"]
    failed: list[FailedDocument]


class GroupDocument(TypedDict):
    systems: Annotated[list[str], "profiles, and runtimes as runtime:NAME"]
    has_reference: bool
    leaves: LeaveDocument | None
    difference: BriefDifferenceDocument | None


class LeaveDocument(TypedDict):
    """The first operator at which a system of the group has the reference's inputs and gives other outputs."""

    operator: int
    op: str


class PartingDocument(TypedDict):
    operator: int
    op: str
    parts: list[list[str]]
    differences: Annotated[list[BriefDifferenceDocument | None], "of each part from the first one"]
    ruling: RulingDocument | None


class FailedDocument(TypedDict):
    system: str
    reason: str


class RulingDocument(TypedDict):
    """The distances from the operator's formula, and the parts that no rounding explains."""

    distances: Annotated[list[int | None], "of each part, in codes"]
    at_fault: Annotated[list[int], "places of the parts that no rounding explains"]
    reason: str
