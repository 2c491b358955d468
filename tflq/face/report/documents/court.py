"""Documents of `tflq court` and `golden diff`.

The document of `tflq court`.

The document of `tflq golden diff`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.goldens.manifest import InputsDocument, RuntimeDocument
from tflq.face.report.documents.filling import Of
from tflq.face.report.documents.shared import BriefDifferenceDocument, ChangeDocument, ModelDocument, PrintedDocument
from tflq.verbs.drift import Drifted

if TYPE_CHECKING:
    from typing import NotRequired


class CourtDocument(PrintedDocument):
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

    operator: Annotated[int, Of("index")]
    op: str


class PartingDocument(TypedDict):
    operator: Annotated[int, Of("index")]
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


class GoldenDiffDocument(PrintedDocument):
    """The output of `tflq golden diff --json`."""

    schema: Literal["tflq/golden-diff/1"]
    first: RecordingDocument
    second: RecordingDocument
    profile: Annotated[str, "the profile of the first recording's runtime"]
    samples: int
    differs: bool
    verdict: Annotated[str, ("enum", ("same", "differs", "explained", "incomplete", "nothing compared"))]
    operators: list[ChangedOperatorDocument]
    outputs: Annotated[list[BriefDifferenceDocument | None], "null where both lack it"]
    output_samples: Annotated[list[int], "for each output, the samples in which both recordings hold it"]
    explained: NotRequired[
        Annotated[
            ExplainedChangeDocument | None,
            "the profiles of both runtimes, if each reproduces every bit of its recording",
        ]
    ]
    choices: NotRequired[
        Annotated[list[ChangedChoiceDocument], "for each output with rows, how many choose another element"]
    ]
    causes: Annotated[list[str], "what reproduces the second recording's bits of the first operator that changed"]


class RecordingDocument(TypedDict):
    golden: str
    runtime: RuntimeDocument


class ChangedOperatorDocument(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    op: str
    drifted: Annotated[Drifted, "changed: of equal inputs it made other bits; follows: its inputs differ, too"]
    samples: Annotated[int, "samples in which both recordings hold all of its results"]
    difference: BriefDifferenceDocument | None


class ExplainedChangeDocument(TypedDict):
    """The profiles of both runtimes, if each reproduces every bit of its recording."""

    first: str
    second: str
    changes: Annotated[
        list[ChangeDocument],
        "what releases changed in the operators that differ; before and after are formulas of the two profiles",
    ]


class ChangedChoiceDocument(TypedDict):
    rows: int
    flipped: int
