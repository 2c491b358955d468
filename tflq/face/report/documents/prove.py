"""The document of `tflq prove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument, Printed
from tflq.proof.verdicts import Word
from tflq.typing import Pair

if TYPE_CHECKING:
    from typing import NotRequired


class ProveDocument(Printed):
    """The output of `tflq prove --json`: operators under several profiles, equal for every input or not."""

    schema: Literal["tflq/prove/2"]
    model: ModelDocument
    profiles: Annotated[list[str], "the verdict is about these"]
    not_covered: Annotated[list[NotCoveredDocument], "profiles that refuse the model and do not count"]
    coverage: Annotated[list[CoverageDocument], "how far each subgraph is proved, if its inputs are equal"]
    verdict: Annotated[Word, "a difference before anything undecided"]
    counts: CountDocument
    operators: list[OperatorDocument]
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


class OperatorDocument(TypedDict):
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
    verdict: Word
    reason: Annotated[str, "how it was proved, where they part, or what is missing"]
    witness: WitnessDocument | None


class WitnessDocument(TypedDict):
    inputs: Annotated[list[int], "tensors fed"]
    output: Annotated[int, "the tensor that differs"]
    element: Annotated[list[int], "the first that does"]
    first: float | str
    second: float | str
    differing: Annotated[int, "elements"]
    accumulator: Annotated[int | None, "sum of products, without the bias, that the input was made to reach"]


class AnswerDocument(TypedDict):
    """The search of an input that changes an arg-max under the first two profiles (--answer)."""

    tried: Annotated[int, "inputs that were run"]
    output: Annotated[str | None, "null: no such input was found, which is no proof"]
    row: int | None
    answers: Annotated[list[int] | None, "the element chosen under each profile"]
    file: str | None


class CoverageDocument(TypedDict):
    subgraph: int
    covered: Annotated[list[int], "computed tensors whose whole upstream is equal for every input"]
    edge: Annotated[list[int], "those of them that are outputs, or that an operator outside of the proof reads"]
    outputs: list[int]
    outside: Annotated[list[int], "operators that are not covered"]
