"""The document of `tflq golden diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import RuntimeDocument
from tflq.face.report.documents.shared import BriefDifferenceDocument, ChangeDocument, Printed
from tflq.verbs.drift import Drifted

if TYPE_CHECKING:
    from typing import NotRequired


class GoldenDiffDocument(Printed):
    """The output of `tflq golden diff --json`."""

    schema: Literal["tflq/golden-diff/1"]
    first: RecordingDocument
    second: RecordingDocument
    profile: Annotated[str, "the profile of the first recording's runtime"]
    samples: int
    differs: bool
    verdict: Annotated[str, ("enum", ("same", "differs", "explained", "incomplete", "nothing compared"))]
    operators: list[OperatorDocument]
    outputs: Annotated[list[BriefDifferenceDocument | None], "null where both lack it"]
    output_samples: Annotated[list[int], "for each output, the samples in which both recordings hold it"]
    explained: NotRequired[
        Annotated[
            ExplainedDocument | None, "the profiles of both runtimes, if each reproduces every bit of its recording"
        ]
    ]
    choices: NotRequired[Annotated[list[ChoiceDocument], "for each output with rows, how many choose another element"]]
    causes: Annotated[list[str], "what reproduces the second recording's bits of the first operator that changed"]


class RecordingDocument(TypedDict):
    golden: str
    runtime: RuntimeDocument


class OperatorDocument(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    op: str
    drifted: Annotated[Drifted, "changed: of equal inputs it made other bits; follows: its inputs differ, too"]
    samples: Annotated[int, "samples in which both recordings hold all of its results"]
    difference: BriefDifferenceDocument | None


class ExplainedDocument(TypedDict):
    """The profiles of both runtimes, if each reproduces every bit of its recording."""

    first: str
    second: str
    changes: Annotated[
        list[ChangeDocument],
        "what releases changed in the operators that differ; before and after are formulas of the two profiles",
    ]


class ChoiceDocument(TypedDict):
    rows: int
    flipped: int
