"""The document of `tflq conform`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from tflq.devices.conformance.judging import Result, SuiteVerdict
from tflq.face.report.documents.shared import JointCauseDocument, MadeDocument, NearestDocument, Printed
from tflq.typing import Pair


class ConformDocument(Printed):
    """The output of `tflq conform run`, `check` and `merge` with --json: a target compared with a suite."""

    schema: Literal["tflq/conform/1"]
    target: str
    profile: Annotated[str, "whose outputs are expected"]
    level: Annotated[str, ("enum", ("smoke", "standard", "exhaustive"))]
    verdict: SuiteVerdict
    suite: Annotated[str, "SHA-256 of the suite's list of cases"]
    shard: Annotated[Pair[int], "[i, n]: the i-th of n parts of the suite"]
    made: Annotated[MadeDocument, "seed and version of tflq that the suite was made with, as far as they are known"]
    left: Annotated[int, "cases that were not judged, because the run was interrupted"]
    compared: Annotated[ComparedDocument, "cases whose outputs were compared, of those that a target has to run"]
    max_refused: Annotated[int | None, "cases that may be refused; null: any number, except all"]
    endings: Annotated[list[str], "how calls of the target failed after it had answered all of their cases"]
    explained: Annotated[ExplainedDocument, "groups of failing cases whose causes were sought, of all groups"]
    counts: CountDocument
    joint: Annotated[list[JointCauseDocument], "causes that each reproduce groups of failing cases, the widest first"]
    nearest: Annotated[
        list[NearestDocument],
        "the nearest arithmetic for operators and types that no arithmetic of the grammar reproduces",
    ]
    joint_fault: Annotated[str | None, "why an arithmetic for many cases was not searched, or not for all"]
    refusals: Annotated[
        list[RefusalDocument],
        "refused cases by reason: that of the first case; others have their own operators, types and numbers in it",
    ]
    cases: list[CaseDocument]


class ComparedDocument(TypedDict):
    """Cases whose outputs were compared, of those that a target has to run."""

    cases: int
    of: int


class ExplainedDocument(TypedDict):
    """Groups of failing cases whose causes were sought, of all groups."""

    groups: int
    of: int


class CountDocument(TypedDict):
    passes: int
    differs: int
    refused: Annotated[int, "the target takes no such model"]
    accepted: Annotated[int, "had to be refused"]
    ended: Annotated[int, "the target crashed, hung or said nothing"]
    malformed: Annotated[int, "outputs of another size, or beside a refusal"]


class RefusalDocument(TypedDict):
    reason: str
    cases: int
    operators: list[str]


class CaseDocument(TypedDict):
    id: str
    op: str
    types: str
    level: Annotated[str, ("enum", ("smoke", "standard", "exhaustive"))]
    aim: Annotated[str, "the rounding, limit or geometry that the case is there for"]
    tells: Annotated[list[str], "profiles that give other bits"]
    must_be_refused: Annotated[bool, "a target must refuse the model"]
    result: Result
    reason: str | None
    sample: int | None
    difference: CaseDifferenceDocument | None
    causes: Annotated[list[str], "what reproduces the bits"]
    is_explained: Annotated[bool, "causes were searched for this case"]
    fault: Annotated[str | None, "why no cause could be searched"]
    place: Annotated[str | None, "where it differs, if no cause is known"]
    mark: Annotated[str, "a digest of the case and of all its differences"]
    digest: Annotated[str, "a digest of the model and its inputs: the case's name in suites of all versions"]
    outputs: Annotated[str | None, "a digest of the target's outputs; null: there are none of the right sizes"]
    size: Annotated[int, "bytes of the model and its inputs; 0: not known"]


class CaseDifferenceDocument(TypedDict):
    elements: int
    differing: int
    unit: Annotated[str, ("enum", ("LSB", "ULP", ""))]
    largest: int
    first: dict[str, Any] | None
