"""The document of `tflq quantize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from tflq.face.report.documents.compare import ComparisonDocument
from tflq.face.report.documents.quantize_weights import CheckDocument
from tflq.face.report.documents.shared import ModelDocument, Printed
from tflq.typing import Count, NotFinite, Sha256


class QuantizeDocument(Printed):
    """The output of `tflq quantize --json`."""

    schema: Literal["tflq/quantize/1"]
    model: ModelDocument
    output: ModelDocument
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
        EightBitsDocument | None, "weights of mode int8x4 that keep eight bits; null if there are none"
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
    operators: Annotated[Count, "elements that operators alone make otherwise, over all runtimes"]


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
