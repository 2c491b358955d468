"""The document of `tflq bench`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from tflq.comparison.verification.manifest import InputsDocument, RuntimeDocument
from tflq.face.report.documents.shared import ModelDocument, Printed


class BenchDocument(Printed):
    """The output of `tflq bench --json`."""

    schema: Literal["tflq/bench/1"]
    model: ModelDocument
    profiles: list[str]
    threads: int
    kernels: str
    missing: dict[str, str]
    notes: list[str]
    interrupted: bool
    cases: list[CaseDocument]


class CaseDocument(TypedDict):
    signature: str | None
    inputs: InputsDocument
    sides: list[SideDocument]
    operators: list[OperatorDocument]


#: The keys that Python has as words.
_Importing = TypedDict("_Importing", {"import": Annotated[float, "seconds, as all times; of importing the runtime"]})


class SideDocument(_Importing):
    name: str
    kind: Annotated[str, ("enum", ("profile", "runtime"))]
    runtime: RuntimeDocument | None
    failure: str | None
    load: float
    first: Annotated[float, "The first run, with the allocation of tensors"]
    median: float | None
    minimum: float | None
    invokes: int
    turns: int
    peak: Annotated[int | None, "Largest resident memory, in bytes"]
    bits: Annotated[
        str, ("enum", ("same", "differs", "not compared")), "Outputs compared with those of the first side, bit by bit"
    ]
    bits_reason: str | None
    ratio: Annotated[
        RatioDocument | None,
        "Times of the first side over this one's, turn by turn: median and quartiles; and of the smallest times",
    ]


class RatioDocument(TypedDict):
    median: float
    minimum: float
    low: float
    high: float


class OperatorDocument(TypedDict):
    index: int
    op: str
    seconds: float
    macs: int
    rate: float | None
