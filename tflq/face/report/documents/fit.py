"""The document of `tflq fit`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.diagnosis.profile_fit import FitVerdict
from tflq.face.report.documents.shared import DiscriminationDocument, Printed


class FitDocument(Printed):
    """The output of `tflq fit --json`."""

    schema: Literal["tflq/fit/1"]
    best: Annotated[str | None, "Null where no profile explains any operator"]
    unexplained: Annotated[list[int], "Operators that differ under the best profile"]
    operators: list[str]
    failures: Annotated[dict[str, str], "Why operators, by index, run under no profile: the reason under the base"]
    matrix: Annotated[
        dict[str, list[list[int] | None]],
        "For each profile and operator [elements that match, elements], or null where it could not be compared",
    ]
    verdict: FitVerdict
    base: str
    compared: Annotated[
        ComparedDocument, "What was compared, of all operators; results inside their ranges, and how many are needed"
    ]
    foreign: Annotated[list[str], "Causes of runtimes without a profile that reproduce what the base does not"]
    fitting: Annotated[list[str], "Profiles that reproduce every element compared, the nearest to the base first"]
    ties: Annotated[list[str], "Profiles that explain the same elements as the best one, itself among them"]
    compatible: list[CompatibleDocument]
    mix: Annotated[dict[str, list[str]], "For each type of operator the profiles under which all of it agrees"]
    parts: Annotated[list[PartDocument], "As few profiles as explain all types of operators that any does"]
    unknown: Annotated[list[int], "Operators that no profile explains"]
    discrimination: DiscriminationDocument | None


class ComparedDocument(TypedDict):
    """The operators that were compared, of all; results inside their ranges, and how many are needed."""

    operators: int
    of: int
    elements: int
    telling: int
    informative: int
    needed: int


class CompatibleDocument(TypedDict):
    package: str
    resolver: str
    versions: list[str]
    cpus: list[str]


class PartDocument(TypedDict):
    profile: str
    operators: list[str]
