"""The vocabulary of a `.tflite` file: frozen values, no behaviour."""

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
    "Model",
    "Operator",
    "OperatorCode",
    "Quantization",
    "Record",
    "SignatureDef",
    "Subgraph",
    "TensorSpec",
    "TensorType",
    "UnknownField",
]
