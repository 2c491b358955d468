"""The document of `tflq inspect --overflow`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from tflq.face.report.documents.shared import Printed

if TYPE_CHECKING:
    from typing import NotRequired


class OverflowDocument(Printed):
    """The output of `tflq inspect --overflow --json`."""

    schema: Literal["tflq/overflow/1"]
    model: str
    profile: str
    bits: int
    operators: list[OperatorDocument]


class OperatorDocument(TypedDict):
    signature: NotRequired[Annotated[str | None, "of a model with several"]]
    index: int
    op: str
    low: int
    high: int
    channel: int
    bits: int
    overflows: bool
