"""Documents of `tflq prove`, `profiles` and `session`.

The document of `tflq prove`.

The document of `tflq prove --check`.

The document of `tflq profiles`.

The document of `tflq session`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.face.report.documents.filling import Of
from tflq.face.report.documents.shared import DifferenceDocument, ModelDocument, OperatorNameDocument, PrintedDocument
from tflq.proof.operator import Word
from tflq.typing import Pair

if TYPE_CHECKING:
    from typing import NotRequired


class ProveDocument(PrintedDocument):
    """The output of `tflq prove --json`: operators under several profiles, equal for every input or not."""

    schema: Literal["tflq/prove/2"]
    model: ModelDocument
    profiles: Annotated[list[str], "the verdict is about these"]
    not_covered: Annotated[list[NotCoveredDocument], Of("refused"), "profiles that refuse the model and do not count"]
    coverage: Annotated[list[ProvedCoverageDocument], "how far each subgraph is proved, if its inputs are equal"]
    verdict: Annotated[Word, Of("word"), "a difference before anything undecided"]
    counts: CountDocument
    operators: list[ProvedOperatorDocument]
    answer: NotRequired[
        Annotated[
            AnswerDocument, "the search of an input that changes an arg-max under the first two profiles (--answer)"
        ]
    ]


class NotCoveredDocument(TypedDict):
    profile: str
    reason: str


#: The number of operators with each verdict.
CountDocument = TypedDict("CountDocument", {"equal": int, "differs": int, "not decided": int})


class ProvedOperatorDocument(TypedDict):
    subgraph: int
    index: Annotated[int, "in its subgraph"]
    op: str
    verdict: Annotated[Word, "on all profiles"]
    groups: Annotated[
        list[list[str]], "profiles that are proved to give the same bits, the first profile's group first"
    ]
    accumulators: Annotated[Pair[int] | None, "lowest and highest sum of products with the bias"]
    verdicts: Annotated[list[VerdictDocument], "the first profile and each of the others"]


class VerdictDocument(TypedDict):
    first: str
    second: str
    verdict: Annotated[Word, Of("word")]
    reason: Annotated[str, "how it was proved, where they part, or what is missing"]
    witness: WitnessDocument | None


class WitnessDocument(TypedDict):
    inputs: Annotated[list[int], "tensors fed"]
    output: Annotated[int, "the tensor that differs"]
    element: Annotated[list[int], "the first that does"]
    first: float | str
    second: float | str
    differing: Annotated[int, Of("count"), "elements"]
    accumulator: Annotated[int | None, "sum of products, without the bias, that the input was made to reach"]


class AnswerDocument(TypedDict):
    """The search of an input that changes an arg-max under the first two profiles (--answer)."""

    tried: Annotated[int, "inputs that were run"]
    output: Annotated[str | None, "null: no such input was found, which is no proof"]
    row: int | None
    answers: Annotated[list[int] | None, "the element chosen under each profile"]
    file: str | None


class ProvedCoverageDocument(TypedDict):
    subgraph: int
    covered: Annotated[list[int], "computed tensors whose whole upstream is equal for every input"]
    edge: Annotated[list[int], "those of them that are outputs, or that an operator outside of the proof reads"]
    outputs: list[int]
    outside: Annotated[list[int], "operators that are not covered"]


class CertificateCheckDocument(PrintedDocument):
    """The output of `tflq prove --check --json`: whether a certificate holds for a model."""

    schema: Literal["tflq/certificate-check/1"]
    model: ModelDocument
    verdict: Annotated[str, Of("word"), ("enum", ("holds", "void"))]
    problems: Annotated[list[str], "statements that are not true of this model"]
    certificate: CheckedCertificateDocument


class CheckedCertificateDocument(TypedDict):
    verdict: str
    profiles: list[str]


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


class ProfilesComparisonDocument(TypedDict):
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
    against: Annotated[list[str], Of("profiles")]
    operators: list[EffectOnOperatorDocument]


class EffectOnOperatorDocument(TypedDict):
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


class ReleasesAgreementDocument(TypedDict):
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


class SessionDocument(PrintedDocument):
    """The output of `tflq session --json`."""

    schema: Literal["tflq/session/1"]
    verdict: Annotated[str, ("enum", ("same", "differs", "compared", "incomplete", "nothing compared"))]
    models: list[ModelDocument]
    between: Annotated[Pair[str], Of("names")]
    free: bool
    prompt: int
    tokens: Annotated[list[list[int]], Of("texts")]
    agreement: SessionAgreementDocument
    perplexities: list[float] | None
    parted: int | None
    first: FirstStepDocument | None
    steps: list[SessionStepDocument]
    notes: list[str]


class SessionAgreementDocument(TypedDict):
    agree: int
    of: int


class FirstStepDocument(TypedDict):
    step: int
    signature: str
    position: int
    operator: OperatorNameDocument | None
    band: str | None
    output: str | None
    slot: list[int]


class SessionStepDocument(TypedDict):
    number: int
    signature: str
    position: int
    tokens: list[int]
    outputs: dict[str, DifferenceDocument]
    noise: dict[str, float | str | None]
    logits: LogitDocument | None
    bands: list[BandDocument]


class LogitDocument(TypedDict):
    noise: Annotated[float | str | None, 'dB; null if all bits agree, "-inf" without a finite ratio']
    divergence: float | str | None
    choices: list[int]
    losses: list[float] | None


class BandDocument(TypedDict):
    name: str
    compared: int
    differing: int
    noise: Annotated[float | str | None, 'dB; null if all bits agree, "-inf" without a finite ratio']
