"""The vocabulary of a `.tflite` file: frozen values, and views that resolve their indices."""

from tflq.model.ir.graph import GraphView, OperatorView, view, with_graph
from tflq.model.ir.model import (
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
from tflq.model.ir.signatures import Root, choose_roots, input_names, output_names, rooted, roots
from tflq.model.ir.signed import Signed, only_signed, signed
from tflq.model.ir.types import CARRIER, STORED_BITS, TensorType

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
    "Root",
    "SignatureDef",
    "Signed",
    "Subgraph",
    "TensorSpec",
    "TensorType",
    "UnknownField",
    "choose_roots",
    "input_names",
    "only_signed",
    "output_names",
    "rooted",
    "roots",
    "signed",
    "view",
    "with_graph",
]
