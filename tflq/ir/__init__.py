"""The vocabulary of a `.tflite` file: frozen values, and views that resolve their indices."""

from tflq.ir.graph import GraphView, OperatorView, view, with_graph
from tflq.ir.model import (
    Buffer,
    Model,
    Operator,
    OperatorCode,
    Quantization,
    Record,
    SignatureDef,
    Subgraph,
    TensorSpec,
    UnknownField,
)
from tflq.ir.types import CARRIER, STORED_BITS, TensorType

__all__ = [
    "CARRIER",
    "STORED_BITS",
    "Buffer",
    "GraphView",
    "Model",
    "Operator",
    "OperatorCode",
    "OperatorView",
    "Quantization",
    "Record",
    "SignatureDef",
    "Subgraph",
    "TensorSpec",
    "TensorType",
    "UnknownField",
    "view",
    "with_graph",
]
