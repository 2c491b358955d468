"""Operators of TensorFlow Lite Micro: those that its Python package registers, without uint8 and hybrid forms.

Source: tflite-micro (October 2026), python_ops_resolver.cc; the type switches of its kernels.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.ir import TensorType
from tflq.kernels.facts import OPERATORS
from tflq.kernels.kernel import Kernel
from tflq.kernels.signature import Signature

#: The operators that it registers.
REGISTERED = frozenset(op for op, fact in OPERATORS.items() if fact.micro)
_CODES = (TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def accepted(row: Kernel) -> Kernel | None:
    """Return the row without uint8 where that is refused; None if nothing of it is left."""
    if row.op == "QUANTIZE":  # of other types, all of them among its own
        return None
    signature = row.signature
    words = OPERATORS[row.op].micro.split()
    if "-hybrid" in words and signature.is_float and signature.reads(*_CODES):
        return None
    first = signature.inputs[0].without(_refused(words)) if signature.inputs else None
    if signature.inputs and first is None:
        return None
    left: Signature | None = signature if first is None else replace(signature, inputs=(first, *signature.inputs[1:]))
    if left is not None and "uint8" not in words:
        left = left.without(TensorType.UINT8)
    return None if left is None else row.taking(left)


def _refused(words: list[str]) -> list[TensorType]:
    """Return the types of the first operand that the operator refuses when it runs."""
    return [TensorType[word[1:].upper()] for word in words if word.startswith("-") and word != "-hybrid"]
