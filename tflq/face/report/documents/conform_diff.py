"""The document of `tflq conform diff`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.devices.conformance.changes import Answer, ChangeVerdict
from tflq.devices.conformance.judging import Result
from tflq.face.report.documents.shared import MadeDocument, Printed


class ConformDiffDocument(Printed):
    """The output of `tflq conform diff` with --json: two runs of a suite compared."""

    schema: Literal["tflq/conform-diff/1"]
    verdict: ChangeVerdict
    before: RunDocument
    after: RunDocument
    same: Annotated[int, "cases that ran in both with the same bits"]
    neither_runs: Annotated[int, "cases that both refuse, or fail to run"]
    only_before: Annotated[int, "cases of the first run that the second does not have"]
    only_after: int
    changed: Annotated[int, "cases with other bits, or another answer"]
    operators: Annotated[list[OperatorDocument], "changed operators and types, those of most changed cases first"]


class RunDocument(TypedDict):
    target: str
    profile: Annotated[str, "whose outputs the suite expected"]
    level: Annotated[str, ("enum", ("smoke", "standard", "exhaustive"))]
    suite: str
    left: Annotated[int, "cases that were not judged"]
    made: MadeDocument


class OperatorDocument(TypedDict):
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
    digest: Annotated[str, "of the model and its inputs"]
    aim: str
    size: Annotated[int, "bytes of the model and its inputs; 0: not known"]
    before: JudgedDocument
    after: JudgedDocument


class JudgedDocument(TypedDict):
    id: str
    answer: Answer
    result: Result
    reason: str | None
    outputs: Annotated[str | None, "a digest of the outputs"]
    causes: list[str]
