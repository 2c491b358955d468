"""The document of `tflq inspect`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from tflq.face.report.documents.shared import ConstantsDocument, ModelDocument, Printed, PromiseDocument


class GraphDocument(TypedDict):
    """A subgraph and what its operators were prepared with."""

    subgraph: Annotated[int, "index of the subgraph"]
    inputs: list[int]
    outputs: list[int]
    macs: Annotated[
        int, "multiply-accumulates of one inference; subgraphs that operators run count once for each operator"
    ]
    tensors: list[TensorDocument]
    operators: list[OperatorDocument]


class InspectDocument(Printed, GraphDocument):
    """The output of `tflq inspect --json`, with the graph of the first signature."""

    schema: Literal["tflq/inspect/1"]
    model: ModelDocument
    profile: str
    description: str
    subgraphs: int
    signatures: Annotated[list[SignatureDocument], "every signature; name is null if the model has only one"]


class TensorDocument(TypedDict):
    index: int
    name: str
    type: str
    shape: list[int]
    signature: list[int] | None
    scale: list[float | str]
    zero_point: list[int]
    quantized_dimension: int
    kind: Annotated[str, ("enum", ("input", "output", "constant", "variable", "activation"))]
    bytes: int


class OperatorDocument(TypedDict):
    index: int
    op: str
    version: int
    inputs: Annotated[list[int], "tensor indices, -1 where absent"]
    outputs: list[int]
    options: dict[str, Any]
    macs: int
    constants: ConstantsDocument | None
    promise: PromiseDocument | None
    reason: Annotated[str | None, "why the profile refuses it"]


class SignatureDocument(GraphDocument):
    name: str | None
    inner: list[InnerDocument]


class InnerDocument(GraphDocument):
    name: str
    callers: list[str]
