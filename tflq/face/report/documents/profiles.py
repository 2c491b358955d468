"""The document of `tflq profiles`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument
from tflq.typing import Pair

if TYPE_CHECKING:
    from typing import NotRequired


class ListDocument(TypedDict):
    schema: Literal["tflq/profiles/1"]
    profiles: list[ProfileDocument]


class ProfileDocument(TypedDict):
    name: str
    package: str
    version: str
    resolver: str
    cpu: str
    vectors: NotRequired[Annotated[str, "the vector extension whose float results it has; empty: any"]]


class ComparisonDocument(TypedDict):
    schema: Literal["tflq/profiles/1"]
    compared: Pair[str]
    differences: list[RowDifferenceDocument]


class RowDifferenceDocument(TypedDict):
    op: str
    types: Annotated[list[str], 'as "int8 int8 -> int8"']
    primitives: list[PrimitiveDocument]
    notes: list[str]


class PrimitiveDocument(TypedDict):
    name: Annotated[str, '"kernel", or a field of the arithmetic']
    first: str
    second: str


class EffectDocument(TypedDict):
    schema: Literal["tflq/profiles/1"]
    model: ModelDocument
    base: str
    against: list[str]
    operators: list[OperatorDocument]


class OperatorDocument(TypedDict):
    subgraph: Annotated[int, "its index in the file"]
    index: int
    op: str
    types: str
    refused: Annotated[str | None, "why the base refuses the operator"]
    proved: Annotated[
        list[str], "with --prove: profiles that prepare it otherwise and give the same bits for every input"
    ]
    effects: list[OperatorEffectDocument]


class OperatorEffectDocument(TypedDict):
    profile: str
    field: Annotated[str, '"kernel", "refused", or the constant that differs']
    base: str
    here: str


class AgreementDocument(TypedDict):
    schema: Literal["tflq/profiles/1"]
    model: ModelDocument
    since: str
    operators: Annotated[list[str], "names of all operators"]
    places: Annotated[list[str], "their indices, after those of their subgraphs beyond the first"]
    agreements: list[OtherAgreementDocument]


class OtherAgreementDocument(TypedDict):
    resolver: Annotated[str, ("enum", ("ref", "opt", "xnnpack"))]
    releases: Annotated[list[str], ("minItems", 1)]
    apart: Annotated[list[int], "operators for which the resolver's newest release can give other bits"]
