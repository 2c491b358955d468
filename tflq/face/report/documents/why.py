"""The document of `tflq why`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.diagnosis.certainty import Certainty
from tflq.diagnosis.usage.search import Side
from tflq.face.report.documents.explain import ExplainDocument
from tflq.face.report.documents.shared import OperatorNameDocument, Printed


class WhyDocument(Printed):
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
    effect: EffectDocument | None
    advice: str
    reduced: Annotated[str | None, "name of the reduced model that `tflq reduce` writes"]
    runtimes: Annotated[
        SidesDocument | None,
        "the installed runtimes, if they were compared: groups with the same outputs, and those that failed",
    ]
    warnings: list[str]
    findings: Annotated[ExplainDocument | None, "the document of `tflq explain`: explain.schema.json"]


class MistakeDocument(TypedDict):
    side: Side
    certain: bool
    before: Annotated[int, "elements that differ with the mistake"]
    after: Annotated[int, "elements that differ without it"]
    elements: int


class EffectDocument(TypedDict):
    flipped: Annotated[int, "rows whose arg-max changes"]
    rows: int
    change: Annotated[float, "largest change of an output, as a share of its largest magnitude"]


class SidesDocument(TypedDict):
    """The installed runtimes, if they were compared: groups with the same outputs, and those that failed."""

    groups: list[list[str]]
    failed: dict[str, str]
