"""Documents of `tflq conform` and `learn`.

The document of `tflq conform`.

The document of `tflq conform diff`.

The document of `tflq conform report`.

The document of `tflq learn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.devices.learning.findings import LearnState
from tflq.devices.suites.changes import ChangeVerdict
from tflq.devices.suites.judge import CaseResult, Response, SuiteVerdict
from tflq.face.report.documents.filling import SELF, Of
from tflq.face.report.documents.shared import JointCauseDocument, MadeDocument, NearestDocument, PrintedDocument
from tflq.typing import Count, Pair

if TYPE_CHECKING:
    from typing import NotRequired


class ConformDocument(PrintedDocument):
    """The output of `tflq conform run`, `check` and `merge` with --json: a target compared with a suite."""

    schema: Literal["tflq/conform/1"]
    target: str
    profile: Annotated[str, "whose outputs are expected"]
    level: Annotated[str, ("enum", ("smoke", "standard", "exhaustive"))]
    verdict: SuiteVerdict
    suite: Annotated[str, "SHA-256 of the suite's list of cases"]
    shard: Annotated[Pair[int], "[i, n]: the i-th of n parts of the suite"]
    ops: Annotated[list[str], "the operators whose cases were run; empty: all of the suite's"]
    made: Annotated[
        MadeDocument, SELF, "seed and version of tflq that the suite was made with, as far as they are known"
    ]
    left: Annotated[int, "cases that were not judged, because the run was interrupted"]
    compared: Annotated[
        ComparedCasesDocument, SELF, "cases whose outputs were compared, of those that a target has to run"
    ]
    max_refused: Annotated[int | None, Of("most_refused"), "cases that may be refused; null: any number, except all"]
    endings: Annotated[list[str], "how calls of the target failed after it had answered all of their cases"]
    explained: Annotated[ExplainedCaseDocument, "groups of failing cases whose causes were sought, of all groups"]
    counts: CountDocument
    joint: Annotated[list[JointCauseDocument], "causes that each reproduce groups of failing cases, the widest first"]
    nearest: Annotated[
        list[NearestDocument],
        "the nearest arithmetic for operators and types that no arithmetic of the grammar reproduces",
    ]
    joint_fault: Annotated[
        str | None, Of("joint.fault"), "why an arithmetic for many cases was not searched, or not for all"
    ]
    refusals: Annotated[
        list[RefusalDocument],
        "refused cases by reason: that of the first case; others have their own operators, types and numbers in it",
    ]
    cases: list[CaseDocument]


class ComparedCasesDocument(TypedDict):
    """Cases whose outputs were compared, of those that a target has to run."""

    cases: Annotated[int, Of("compared")]
    of: Annotated[int, Of("runnable")]


class ExplainedCaseDocument(TypedDict):
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
    id: Annotated[str, Of("case.id")]
    op: Annotated[str, Of("case.op")]
    types: Annotated[str, Of("case.types")]
    level: Annotated[str, Of("case.level"), ("enum", ("smoke", "standard", "exhaustive"))]
    aim: Annotated[str, Of("case.aim"), "the rounding, limit or geometry that the case is there for"]
    tells: Annotated[list[str], Of("case.tells"), "profiles that give other bits"]
    must_be_refused: Annotated[bool, Of("case.is_refused"), "a target must refuse the model"]
    result: CaseResult
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


class ConformDiffDocument(PrintedDocument):
    """The output of `tflq conform diff` with --json: two runs of a suite compared."""

    schema: Literal["tflq/conform-diff/1"]
    verdict: ChangeVerdict
    before: ComparedRunDocument
    after: ComparedRunDocument
    same: Annotated[int, "cases that ran in both with the same bits"]
    neither_runs: Annotated[int, Of("idle"), "cases that both refuse, or fail to run"]
    only_before: Annotated[int, "cases of the first run that the second does not have"]
    only_after: int
    changed: Annotated[int, "cases with other bits, or another answer"]
    operators: Annotated[
        list[OperatorChangesDocument], Of("kernels"), "changed operators and types, those of most changed cases first"
    ]


class ComparedRunDocument(TypedDict):
    target: str
    profile: Annotated[str, "whose outputs the suite expected"]
    level: Annotated[str, ("enum", ("smoke", "standard", "exhaustive"))]
    suite: str
    left: Annotated[int, "cases that were not judged"]
    made: Annotated[MadeDocument, SELF]


class OperatorChangesDocument(TypedDict):
    op: str
    types: str
    cases: Annotated[int, "cases that are in both runs"]
    kinds: Annotated[dict[str, int], "changed cases by kind: bits, runs -> refuses ..."]
    options: Annotated[OptionDocument, "options that distinguish the changed cases"]
    before: ComputedDocument
    after: ComputedDocument
    changes: Annotated[list[CaseChangeDocument], "changed cases, the smallest first"]


class OptionDocument(TypedDict):
    """Options that distinguish the changed cases."""

    names: list[str]
    is_only: Annotated[bool, "no unchanged case has one of these options"]
    is_any: Annotated[bool, "every changed case has at least one of them; else it has all"]


class ComputedDocument(TypedDict):
    """The arithmetic that reproduces most changed cases."""

    name: Annotated[str, "empty: none is known"]
    others: Annotated[list[str], "arithmetics that reproduce as many"]
    reproduced: int
    cases: Annotated[int, "changed cases that ran"]
    place: Annotated[str, "where most of them differ from the profile, if no arithmetic is known; else empty"]
    placed: Annotated[int, "cases that differ there"]
    is_refuted: Annotated[bool, "it misses one of the smallest cases: it is the nearest one, not what was computed"]


class CaseChangeDocument(TypedDict):
    digest: Annotated[str, Of("after.digest"), "of the model and its inputs"]
    aim: Annotated[str, Of("after.case.aim")]
    size: Annotated[int, "bytes of the model and its inputs; 0: not known"]
    before: JudgedDocument
    after: JudgedDocument


class JudgedDocument(TypedDict):
    id: Annotated[str, Of("case.id")]
    answer: Response
    result: CaseResult
    reason: str | None
    outputs: Annotated[str | None, "a digest of the outputs"]
    causes: list[str]


class ClaimDocument(PrintedDocument):
    """The output of `tflq conform report --json`: levels of conformance that a run meets."""

    schema: Literal["tflq/claim/1"]
    target: str
    levels_version: Annotated[int, Of("version")]
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


#: A key that Python has as a word.
_Is = TypedDict("_Is", {"is": str})


class LearnDocument(PrintedDocument):
    """The output of `tflq learn --json`."""

    schema: Literal["tflq/learn/1"]
    output: str
    seconds: float
    reason: str
    target: str
    version: str
    date: str
    tflq: str
    complete: bool
    questions: Count
    samples: Count
    elements: Count
    calls: Count
    refused: Count
    failed: Count
    operators: list[LearnedOperatorDocument]
    requantizers: list[RequantizerDocument]


class LearnedOperatorDocument(_Is):
    """The arithmetic of one operator, as far as it is known."""

    op: str
    types: str
    state: LearnState
    questions: Count
    fresh: Count
    geometries: NotRequired[Annotated[Count, "models of other geometries, options and extreme sums that were asked"]]
    fresh_elements: Count
    refused: Count
    tried: Count
    coverage: NotRequired[Annotated[str, "sizes, channels and codes of the models that confirmed it"]]
    not_told_apart: NotRequired[list[str]]
    not_told_apart_count: NotRequired[Count]
    reproduced: NotRequired[MatchedDocument]
    note: NotRequired[str]


class RequantizerDocument(_Is):
    op: str
    type: Annotated[str, Of("kind")]
    left: Count
    tried: Count
    rounds: Count
    accumulators: Count
    reason: str
    fields: dict[str, Any] | None
    formula: str
    element: list[LearnedElementDocument]


class LearnedElementDocument(TypedDict):
    name: str
    value: str


class MatchedDocument(TypedDict):
    same: Count
    elements: Count
