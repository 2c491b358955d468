"""Documents of `tflq why`, `explain`, `fit`, `reduce` and `lint`.

The document of `tflq explain --element` without a dump.

The document of `tflq explain`.

The document of `tflq fit`.

The document of `tflq lint`.

The document of `tflq reduce`.

The document of `tflq why`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.comparison.goldens.manifest import InputsDocument
from tflq.comparison.results import CompareMode
from tflq.diagnosis.causes import CauseVerdict
from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.faults.case import DefectKind
from tflq.diagnosis.hypotheses import HypothesisKind
from tflq.diagnosis.linting.rules import Level
from tflq.diagnosis.profile_fit import FitVerdict
from tflq.diagnosis.usage.search import UserSide
from tflq.face.report.documents.filling import Of
from tflq.face.report.documents.shared import (
    DifferenceDocument,
    DiscriminationDocument,
    JointCauseDocument,
    ModelDocument,
    NearestDocument,
    OperatorNameDocument,
    PrintedDocument,
    TensorShapeDocument,
)

if TYPE_CHECKING:
    from typing import NotRequired


class TracedElementDocument(PrintedDocument):
    """The output of `tflq explain --element --json` without a dump."""

    schema: Literal["tflq/element/1"]
    model: str
    inputs: InputsDocument
    element: WorkedDocument


class TraceDocument(TypedDict):
    op: str
    profile: str
    index: list[int]
    told: Annotated[bool, Of("is_told")]
    taps: Annotated[list[TapDocument], Of("working.taps")]
    outside: Annotated[int, Of("working.outside")]
    steps: Annotated[list[StepDocument], Of("working.steps")]
    expected: float | bool | str


class WorkedDocument(TraceDocument):
    operator: int
    tensor: int
    got: float | bool | str | None
    cause: TraceDocument | None


class TapDocument(TypedDict):
    value: ReadDocument
    weight: ReadDocument | None
    product: float | bool | str


class ReadDocument(TypedDict):
    input: Annotated[int, Of("operand")]
    place: list[int]
    code: float | bool | str
    zero_point: int


class StepDocument(TypedDict):
    name: str
    value: float | bool | str
    how: str


class ExplainDocument(PrintedDocument):
    """The output of `tflq explain --json`."""

    schema: Literal["tflq/explain/1"]
    model: str
    dump: str
    signature: NotRequired[
        Annotated[
            str | None,
            "of a model with several: the one that these findings are about, the gravest of those in the dump",
        ]
    ]
    signatures: NotRequired[
        Annotated[list[ExplainDocument], "the findings on every signature that the dump is of, if there are several"]
    ]
    verdict: Annotated[str, ("enum", ("same", "close", "differs", "incomplete", "nothing compared"))]
    first_divergent: Annotated[
        int | None, "the differing operator that is explained: the one whose difference alone changes the outputs most"
    ]
    noise: NotRequired[
        Annotated[list[int], "operators whose differences are no larger than those of another order of sums of floats"]
    ]
    unknown: list[str]
    operators: list[DifferingOperatorDocument]
    explanation: ExplanationDocument | None
    joint: Annotated[
        list[JointCauseDocument],
        Of("joint.causes"),
        "causes that each reproduce groups of differing operators, the widest first",
    ]
    nearest: Annotated[
        list[NearestDocument],
        "the nearest arithmetic for operators and types that no arithmetic of the grammar reproduces",
    ]
    discrimination: DiscriminationDocument | None
    profile: str
    mode: CompareMode
    next: list[str]
    element: WorkedDocument | None
    growth: GrowthDocument | None
    growths: list[ExplainGrowthDocument]
    sample: int | None
    faults: list[str]


class DifferingOperatorDocument(TypedDict):
    index: int
    op: str
    reason: str
    assumed: list[int]
    tensors: list[TensorDifferenceDocument]


class TensorDifferenceDocument(DifferenceDocument):
    index: int


class ExplanationDocument(TypedDict):
    index: int
    profile: str
    verdict: CauseVerdict
    certainty: Certainty
    doubts: list[str]
    evidence: EvidenceDocument
    places: list[str]
    matching: int
    elements: int
    defect: Annotated[DefectDocument | None, "a fault that is no arithmetic, of the result `tensor`"]
    exact: list[CauseDocument]
    alike: list[int]
    beyond: list[int]
    faults: list[FaultDocument]
    less_likely: list[CauseDocument]
    possible: list[CauseDocument]
    only_here: list[CauseDocument]
    partial: list[CauseDocument]


class EvidenceDocument(TypedDict):
    telling: int
    stimuli: int
    bits: int


class DefectDocument(TypedDict):
    kind: DefectKind
    name: str
    certainty: Certainty
    tensor: int
    place: Annotated[str, "where the wrong elements are"]
    cleared: Annotated[str, "what is right nevertheless"]
    tell: Annotated[str, "what would tell more"]


class CauseDocument(TypedDict):
    kind: HypothesisKind
    name: str
    matching: int
    elements: int
    also: list[str]
    not_at: list[int]
    also_at: list[int]
    proved: Annotated[bool, Of("is_proved"), "all names are proved to be one function"]


class FaultDocument(TypedDict):
    name: str
    kind: str
    text: str


class GrowthDocument(TypedDict):
    operator: Annotated[int, Of("index")]
    reason: str
    spreads: list[SpreadDocument]
    choices: list[ChoiceDocument]


class SpreadDocument(TypedDict):
    index: int
    op: str
    elements: int
    differing: int
    largest: int
    unit: Annotated[str, ("enum", ("LSB", "ULP", ""))]
    mean: float


class ChoiceDocument(TypedDict):
    tensor: int
    rows: int
    flipped: int
    first: FlipDocument | None


class FlipDocument(TypedDict):
    row: int
    before: int
    after: int


class ExplainGrowthDocument(TypedDict):
    operator: Annotated[int, Of("index")]
    reason: str
    later: int
    effect: NotRequired[Annotated[float, "the largest change of a graph output, as a share of its largest magnitude"]]
    reached: int
    farthest: SpreadDocument | None
    flips: bool


class FitDocument(PrintedDocument):
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
    parts: Annotated[list[FittedPartDocument], "As few profiles as explain all types of operators that any does"]
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


class FittedPartDocument(TypedDict):
    profile: str
    operators: list[str]


class LintDocument(PrintedDocument):
    """The output of `tflq lint --json`."""

    schema: Literal["tflq/lint/1"]
    model: ModelDocument
    targets: Annotated[list[DeploymentDocument], "each target that was named"]
    oldest: Annotated[
        list[OldestDocument], "the oldest release of each family that takes the model, if targets were named"
    ]
    findings: list[FindingDocument]
    fixed: FixedDocument | None


class DeploymentDocument(TypedDict):
    target: str
    refused: Annotated[str | None, "what the target refuses first, null if it runs the model"]
    arena: Annotated[ArenaDocument | None, "of tflite-micro"]
    methods: Annotated[list[str], "of MicroMutableOpResolver, for tflite-micro"]
    delegation: Annotated[DelegationDocument | None, "of XNNPACK"]


class ArenaDocument(TypedDict):
    head: Annotated[int, "bytes of activations and scratch buffers"]
    tail: Annotated[int, "bytes that live as long as the interpreter, in a build for Cortex-M"]
    total: int
    peak: Annotated[str, "the operator with the most bytes of buffers alive"]
    unknown: Annotated[list[str], "operators whose kernels' own memory is not counted"]


class DelegationDocument(TypedDict):
    operators: int
    partitions: int
    left: Annotated[list[str], "operators that XNNPACK leaves to the interpreter"]


class OldestDocument(TypedDict):
    family: str
    release: Annotated[str | None, "null if the newest release refuses the model"]
    decides: Annotated[str | None, "what the release before it refuses, null if none does"]


class FindingDocument(TypedDict):
    rule: Annotated[str, 'its id, as "bias-scale"']
    level: Level
    summary: str
    subgraph: int
    operator: Annotated[int, "index in its subgraph"]
    op: str
    tensor: Annotated[int | None, "index in its subgraph"]
    name: Annotated[str, "of the tensor"]
    required: str
    found: str
    fixable: Annotated[bool, "whether --fix corrects it"]


class FixedDocument(TypedDict):
    file: str
    corrected: int


class ReduceDocument(PrintedDocument):
    """The output of `tflq reduce --json`."""

    schema: Literal["tflq/reduce/1"]
    model: Annotated[ModelDocument | None, "null for a result in Python"]
    files: Annotated[FileDocument, "the files written; none for a result in Python"]
    operators: list[int]
    inputs: list[TensorShapeDocument]
    outputs: list[TensorShapeDocument]
    differing: int | None
    next: str


class FileDocument(TypedDict):
    model: NotRequired[str]
    golden: NotRequired[str]
    expected: NotRequired[str]
    bundle: NotRequired[str]


class WhyDocument(PrintedDocument):
    """The output of `tflq why --json`: why a device's results differ, whose fault it is, and what to do."""

    schema: Literal["tflq/why/1"]
    model: str
    evidence: str
    samples: int
    verdict: Annotated[str, ("enum", ("same", "close", "differs", "incomplete", "nothing compared"))]
    answer: Annotated[str, "the answer in one line"]
    fault: Annotated[
        str,
        ("enum", ("user", "model", "device", "runtime", "known", "none", "open")),
        "runtime: another runtime's arithmetic, no one's fault; known: a fault that runtimes are known for",
    ]
    base: Annotated[str, "the profile that the evidence is compared with"]
    nearest: Annotated[str | None, "the profile that explains most"]
    operator: OperatorNameDocument | None
    causes: Annotated[list[str], "each reproduces every bit; the likeliest first"]
    certainty: Annotated[Certainty, "none: the causes are possible, no more"]
    evidence_for_it: Annotated[str, "the evidence for the causes, and what is doubtful"]
    fitting: Annotated[list[str], "profiles that reproduce every element"]
    foreign: Annotated[list[str], "runtimes without a profile that explain the device as well"]
    breach: Annotated[str | None, "the rule that the model breaks in the operator that differs"]
    mistake: MistakeDocument | None
    effect: Annotated[AnswerEffectDocument | None, Of("weight")]
    advice: str
    reduced: Annotated[str | None, "name of the reduced model that `tflq reduce` writes"]
    runtimes: Annotated[
        SidesDocument | None,
        "the installed runtimes, if they were compared: groups with the same outputs, and those that failed",
    ]
    warnings: list[str]
    findings: Annotated[ExplainDocument | None, "the document of `tflq explain`: explain.schema.json"]


class MistakeDocument(TypedDict):
    side: UserSide
    certain: Annotated[bool, Of("is_certain")]
    before: Annotated[int, "elements that differ with the mistake"]
    after: Annotated[int, "elements that differ without it"]
    elements: int


class AnswerEffectDocument(TypedDict):
    flipped: Annotated[int, "rows whose arg-max changes"]
    rows: int
    change: Annotated[float, Of("effect"), "largest change of an output, as a share of its largest magnitude"]


class SidesDocument(TypedDict):
    """The installed runtimes, if they were compared: groups with the same outputs, and those that failed."""

    groups: list[list[str]]
    failed: dict[str, str]
