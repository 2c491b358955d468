"""The document of `tflq compare`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import ModelDocument, Printed
from tflq.typing import NotFinite, Pair


class CompareDocument(Printed):
    """The output of `tflq compare --json`."""

    schema: Literal["tflq/compare/1"]
    reference: ModelDocument
    other: ModelDocument
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
    operator: Annotated[int, "in the reference; -1 where no operator makes the tensor"]
    op: str
    name: str
    elements: int
    sqnr: float | NotFinite
    largest: Annotated[float, "largest difference, either way"]
    mean: Annotated[float, "mean of other - reference"]


class PartDocument(FidelityDocument):
    """The elements of an output that one operand of a concatenation gives."""

    output: Annotated[int, "position among the outputs"]
    values: Annotated[int, "distinct values, up to 256"]
    reference_values: Annotated[int, "distinct values of the reference, up to 256"]


class WideDocument(TypedDict):
    operator: int
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
