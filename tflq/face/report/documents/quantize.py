"""Documents of `tflq quantize` and `compare`.

The document of `tflq quantize` of a model of several signatures.

The document of `tflq compare`.

The document of `tflq quantize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tflq.comparison.goldens.manifest import RuntimeDocument
from tflq.face.report.documents.filling import Of
from tflq.face.report.documents.shared import ModelDocument, PrintedDocument
from tflq.typing import Count, NotFinite, Pair, Sha256

if TYPE_CHECKING:
    from typing import NotRequired


class QuantizeWeightsDocument(PrintedDocument):
    """The output of `tflq quantize --json` of a decoder."""

    schema: Literal["tflq/quantize-weights/1"]
    model: Annotated[ModelDocument | None, "null for a result in Python"]
    output: Annotated[ModelDocument | None, "null for a result in Python"]
    calibration: str
    recipe: dict[str, Any]
    recipe_digest: Sha256
    ranking: Annotated[list[WeightsRankingDocument], "the first was taken", ("minItems", 1)]
    layers: list[LayerDocument]
    steps: dict[str, int]
    windows: int
    check: CheckDocument


class WeightsRankingDocument(TypedDict):
    method: MethodDocument
    divergence: float
    noise: Annotated[float | None, "dB of the logits; null if they are equal"]
    agreement: float
    steps: int


class MethodDocument(TypedDict):
    scaling: str
    gptq: bool


class LayerDocument(TypedDict):
    name: str
    role: str
    shape: list[int]
    uses: int
    form: str


class CheckDocument(TypedDict):
    verdict: Annotated[str, ("enum", ("same", "close", "differs", "incomplete", "nothing compared"))] | None
    reason: str | None
    profile: NotRequired[str]
    runtime: NotRequired[RuntimeDocument]
    compared: NotRequired[int]
    differing: NotRequired[int]


class CompareDocument(PrintedDocument):
    """The output of `tflq compare --json`."""

    schema: Literal["tflq/compare/1"]
    reference: Annotated[ModelDocument | None, "null for a result in Python"]
    other: Annotated[ModelDocument | None, "null for a result in Python"]
    comparison: ComparisonDocument
    runtimes: Annotated[
        list[OnRuntimeDocument], "the other model on each runtime of --runtimes, the first in `comparison`, too"
    ]


class ComparisonDocument(TypedDict):
    samples: int
    sqnr: Annotated[float | NotFinite, "of the worst output about its mean over samples, dB; none that is constant"]
    outputs: list[FidelityDocument]
    tensors: list[FidelityDocument]
    parts: list[PartDocument]
    rescaled: Annotated[
        list[FidelityDocument], "results of QUANTIZE between integers in the other model, by its operators"
    ]
    wide: Annotated[
        list[WideDocument],
        "tensors whose range is many times that of their values; inputs have operator -1 and op INPUT",
    ]
    unmatched: Annotated[int, "tensors of the reference without one of their name and shape in the other"]
    first: Annotated[int | None, "position in tensors of the first that is damaged"]
    worst: Annotated[int | None, "position in tensors"]
    figures: Annotated[FigureDocument, "outputs as they are read"]
    agreement: AgreementDocument | None
    remarks: Annotated[
        list[str], "how inputs and outputs are paired, outputs that say nothing, and tensors that saturate, in words"
    ]


class FidelityDocument(TypedDict):
    operator: Annotated[int, Of("index"), "in the reference; -1 where no operator makes the tensor"]
    op: str
    name: str
    elements: int
    sqnr: float | NotFinite
    largest: Annotated[float, "largest difference, either way"]
    mean: Annotated[float, Of("mean_error"), "mean of other - reference"]


class PartDocument(FidelityDocument):
    """The elements of an output that one operand of a concatenation gives."""

    output: Annotated[int, "position among the outputs"]
    values: Annotated[int, "distinct values, up to 256"]
    reference_values: Annotated[int, "distinct values of the reference, up to 256"]


class WideDocument(TypedDict):
    operator: Annotated[int, Of("index")]
    op: str
    name: str
    range: Pair[float | NotFinite]
    seen: Pair[float | NotFinite]


class FigureDocument(TypedDict):
    """Outputs as they are read."""

    ratios: Annotated[
        dict[str, float],
        "signal-to-noise ratio of each part, dB; that of boxes is 0 where errors are a tenth of a box's size",
    ]
    matches: Annotated[MatchDocument | None, "detections with scores of 0.25 or more; null if the outputs hold none"]
    metrics: list[MetricDocument]


class MatchDocument(TypedDict):
    given: Annotated[int, "of the reference"]
    found: Annotated[int, "of these, found by the other"]
    extra: Annotated[int, "of the other alone"]
    overlap: Annotated[float, "sum over found ones"]


class MetricDocument(TypedDict):
    name: str
    reference: float | None
    other: float | None
    unit: str


class AgreementDocument(TypedDict):
    samples: int
    rate: float
    interval: Annotated[Pair[float], "95 % confidence interval of the rate"]
    divergence: Annotated[float | None, "mean KL divergence in nats; null where outputs are no distributions"]
    flips: list[FlippedDocument]
    accuracy: AccuracyDocument | None
    tied: Annotated[
        int, "samples where several classes share the other model's largest output, and do not share the reference's"
    ]


class FlippedDocument(TypedDict):
    sample: int
    reference: int
    other: int
    margin: Annotated[float, "by how much the reference's class led"]


class AccuracyDocument(TypedDict):
    reference: float
    other: float
    standard_error: Annotated[float, "of the difference, paired"]
    gained: int
    lost: int


class OperatorCountDocument(TypedDict):
    index: int
    op: str
    elements: int
    differing: int


class OnRuntimeDocument(TypedDict):
    profile: str
    error: Annotated[str | None, "why the profile refuses the model"]
    sqnr: float | NotFinite | None
    accuracy: float | None
    agreement: Annotated[float | None, "share of samples with the reference's top-1"]
    metrics: dict[str, float]
    differing: Annotated[int, "elements of the outputs that differ from the first runtime's"]
    elements: int
    samples: Annotated[int, "samples that `differing` and `operators` cover"]
    changed: Annotated[int, "samples, of all, with another top-1 than on the first runtime"]
    operators: Annotated[list[OperatorCountDocument], "operators of the other model that differ on the same inputs"]


class QuantizeDocument(PrintedDocument):
    """The output of `tflq quantize --json`."""

    schema: Literal["tflq/quantize/1"]
    model: Annotated[ModelDocument | None, "null for a result in Python"]
    output: Annotated[ModelDocument | None, "null for a result in Python"]
    calibration: str
    recipe: Annotated[dict[str, Any], "recipe.schema.json"]
    recipe_digest: Sha256
    ranking: Annotated[list[RankingDocument], "the first was taken", ("minItems", 1)]
    proof: Annotated[ProofDocument | None, "of the first of `ranking`, on samples that judged none of them"]
    held_back: Annotated[int, "samples of the comparison that nothing was fitted to; 0: it is over all samples"]
    comparison: ComparisonDocument
    check: CheckDocument
    kept_float: list[RemarkDocument]
    notes: list[RemarkDocument]
    spared: list[RemarkDocument]
    trials: Annotated[list[BudgetTrialDocument], "of a budget, by the number of operators that it spares"]
    sensitivities: list[SensitivityDocument]
    wins_back: Annotated[
        WinsBackDocument | None,
        "what one operator in float gives, as measured; null without --sensitivity, or if that is little",
    ]
    advice: Annotated[AdviceDocument | None, "options that may win losses back, as tried; null without --advise"]
    norms: Annotated[
        NormsDocument | None, "normalizations with activations of 16 bits, or in float; null if there are none"
    ]
    eight_bits: Annotated[
        EightBitsDocument | None, Of("eights"), "weights of mode int8x4 that keep eight bits; null if there are none"
    ]
    streamed: Annotated[StreamedDocument | None, "of a streaming model; null for others"]
    tails: Annotated[
        TailDocument | None,
        "treatments of outputs of several parts, in the order of trials; null if there was nothing to treat",
    ]
    interrupted: Annotated[bool, "whether the search was ended by an interrupt; `ranking` is the best until then"]
    outlying: Annotated[list[int], "samples far beyond the others"]
    data: Annotated[list[str], "remarks about the calibration data"]
    next: str
    runtimes: RuntimesDocument | None
    portable: PortableDocument | None


class RankingDocument(TypedDict):
    methods: Annotated[dict[str, Any], "a candidate of the recipe"]
    sqnr: float | NotFinite | None
    samples: Annotated[int | None, "on which it was judged"]
    ratios: Annotated[
        dict[str, float],
        "of outputs of several parts: signal-to-noise ratio of each, dB; that of boxes is 0 where errors are "
        "a tenth of a box's size",
    ]
    divergence: float | None
    agreement: float | None
    error: str | None
    left: Annotated[str | None, "why it left before all samples had judged it"]
    differing: Annotated[int | None, "elements of the scores that a further runtime has otherwise than the first"]


class ProofDocument(TypedDict):
    samples: int
    sqnr: float | NotFinite
    agreement: Annotated[float | None, "share of the same top-1; null if there is no distribution"]
    share: Annotated[float | None, "share of other samples that keep `ratio` each, with 95 % confidence; null for few"]
    ratio: Annotated[float | NotFinite | None, "dB"]


class RemarkDocument(TypedDict):
    index: Annotated[int, "in the float model"]
    op: str
    text: str


class BudgetTrialDocument(TypedDict):
    spared: Annotated[int, "operators"]
    size: Annotated[int, "bytes"]
    sqnr: Annotated[float | NotFinite, "of the outputs on held-out samples, dB"]
    agreement: Annotated[float | None, "share of these samples with the float model's top-1"]
    taken: bool
    beaten: Annotated[bool, "whether another trial is as small and better, or as good and smaller"]


class SensitivityDocument(TypedDict):
    operator: int
    op: str
    sqnr: float | NotFinite
    agreement: float | None


class WinsBackDocument(TypedDict):
    operator: int
    op: str
    sqnr: Annotated[float, "of the outputs then, dB"]
    gained: Annotated[float, "dB"]
    added: Annotated[int, "bytes that the file has more"]
    tried: Annotated[int, "operators that were measured so"]


class AdviceDocument(TypedDict):
    data: Annotated[list[str], "remarks about the calibration data"]
    samples: Annotated[int, "samples that all figures are of"]
    written: TrialDocument
    trials: Annotated[list[TrialDocument], "what wins back most first"]


class TrialDocument(TypedDict):
    options: Annotated[list[str], "words to add to the command"]
    sqnr: float | NotFinite
    accuracy: float | None
    agreement: Annotated[float | None, "share of samples with the float model's top-1"]
    metrics: dict[str, float]
    size: Annotated[int, "bytes"]
    floats: Annotated[int, "operators in float"]
    wides: Annotated[int, "operators in 16 bits"]
    error: Annotated[str | None, "why the options are refused"]
    wins: Annotated[bool, "0.5 dB, or a tenth of a percent of the metric, or more"]


class StreamedDocument(TypedDict):
    steps: Annotated[int, "of all sequences"]
    sequences: Annotated[int, "each begins with the first values of variables"]
    variables: int
    sqnr: Annotated[float | NotFinite, "of the worst output, each model from its own states, dB"]


class NormsDocument(TypedDict):
    operators: Annotated[list[int], "by index in the model"]
    form: Literal["int16", "float"]
    before: Annotated[float | NotFinite, "signal-to-noise ratio on held-out samples with 8 bits, dB"]
    after: Annotated[float | NotFinite, "the same in this form"]
    added: Annotated[int, "bytes that the file has more"]


class EightBitsDocument(TypedDict):
    operators: Annotated[list[int], "of the float model"]
    candidates: Annotated[int, "operators whose weights could have four bits"]
    before: Annotated[float | NotFinite, "outputs on held-out samples with four bits alone, dB"]
    after: Annotated[float | NotFinite, "the same with these operators in eight bits, dB"]
    added: Annotated[int, "bytes that the file has more"]


class TailDocument(TypedDict):
    taken: Annotated[str | None, "null: as the recipe names it, without trials"]
    tried: list[TriedDocument]


class TriedDocument(TypedDict):
    name: str
    first: Annotated[int, "the first of the operators; -1 if there are none"]
    op: str
    operators: Annotated[int, "in float, or in 16 bits"]
    share: Annotated[float, "of the multiply-accumulates"]
    loss: Annotated[float, "sum of the errors of all parts in units of their signal"]
    ratios: Annotated[dict[str, float], "dB"]
    size: Annotated[int, "bytes"]


class BeforeNudgingDocument(TypedDict):
    differing: list[Count]
    operators: Annotated[Count, Of("total"), "elements that operators alone make otherwise, over all runtimes"]


class NudgeDocument(TypedDict):
    index: Count
    op: str
    factor: Annotated[float, "of the scale", ("minimum", 0.995), ("maximum", 1.005)]
    before: Count
    after: Count


class PortableDocument(TypedDict):
    """The outcome of a recipe that asks for a portable model."""

    rewrites: Annotated[list[RewriteDocument], "operators of the float model that were rewritten"]
    obstacles: Annotated[list[ObstacleDocument], "operators that keep it from being portable as a whole"]
    certificate: Annotated[Mapping[str, Any], "certificate.schema.json"]
    left: Annotated[list[Count], "operators of the float model that are not portable, except for a SOFTMAX at the end"]


class RewriteDocument(TypedDict):
    index: int
    op: str
    name: str
    becomes: str
    why: str
    bytes: Count
    cost: Annotated[str, "of accuracy"]


class ObstacleDocument(TypedDict):
    index: int
    op: str
    name: str
    why: str
    kept: str
    instead: str


class RuntimesDocument(TypedDict):
    """How far the recipe's runtimes agree, on samples held back."""

    runtimes: Annotated[list[str], "the others are compared with the first", ("minItems", 2)]
    samples: Count
    elements: Annotated[Count, "of the outputs"]
    differing: Annotated[list[Count], "elements of the outputs that each other runtime has otherwise"]
    operators: Annotated[list[CountsDocument], "of the written model, each alone on the same inputs"]
    before_nudging: BeforeNudgingDocument
    nudges: Annotated[
        list[NudgeDocument], "scales that were moved, with the disagreements on the samples they were chosen by"
    ]


class CountsDocument(TypedDict):
    index: Count
    op: str
    elements: Count
    differing: list[Count]
