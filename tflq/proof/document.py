"""A certificate as a type."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.proof.verdicts import Word
from tflq.typing import Pair


class CertificateDocument(TypedDict):
    """A certificate of `tflq prove -o`: what is proved of a model, to be checked by `tflq prove --check`."""

    schema: Literal["tflq/certificate/1"]
    tflq: Annotated[str, "the version that made it"]
    digest: Annotated[str, "SHA-256 of all other entries, as JSON with sorted keys"]
    model: ModelDocument
    signature: str | None
    verdict: Annotated[Word, "a difference before anything undecided"]
    profiles: list[ProfileDocument]
    not_covered: Annotated[list[NotCoveredDocument], "profiles that refuse the model"]
    operators: list[OperatorDocument]
    coverage: Annotated[list[CoverageDocument], "how far each subgraph is proved, if its inputs are equal"]


class ModelDocument(TypedDict):
    name: str
    size: int
    sha256: str


class ProfileDocument(TypedDict):
    name: str
    sha256: Annotated[str, "of the definition of the profile, without its description"]
    package: str
    version: str
    resolver: str
    cpu: str
    vectors: str
    also: Annotated[list[str], "names of releases with the same bits"]


class NotCoveredDocument(TypedDict):
    name: str
    reason: str


class OperatorDocument(TypedDict):
    subgraph: int
    index: Annotated[int, "in its subgraph"]
    op: str
    verdict: Annotated[Word, "on all profiles"]
    methods: Annotated[list[str], "how it was proved, or where profiles differ"]
    accumulators: Annotated[Pair[int] | None, "lowest and highest sum of products with the bias"]
    groups: Annotated[
        list[list[str]], "profiles that are proved to give the same bits, the first profile's group first"
    ]


class CoverageDocument(TypedDict):
    subgraph: int
    covered: Annotated[list[int], "computed tensors whose whole upstream is equal for every input"]
    edge: Annotated[list[int], "those of them that are outputs, or that an operator outside of the proof reads"]
    outputs: list[int]
    outside: Annotated[
        list[str], "operators that are not covered, with their verdicts: an equal one follows one that is not"
    ]
