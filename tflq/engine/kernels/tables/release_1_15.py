"""The element types of r1.15's kernels, and what is promised of its floats.

Source: TensorFlow r1.15 lite/kernels/register.cc, register_ref.cc, and the checks of each kernel.
"""

from __future__ import annotations

from dataclasses import replace

from tflq.engine.kernels.exactness import close
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.kernel import Kernel
from tflq.model.ir import TensorType

#: Element types that came later; DEQUANTIZE alone took float16.
_LATER = (
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.INT2,
    TensorType.INT4,
    TensorType.UINT4,
    TensorType.UINT16,
    TensorType.UINT32,
    TensorType.UINT64,
)
#: The operators that computed on int16; those that only move elements name it among others.
_ON_INT16 = frozenset(["ADD", "LOGISTIC", "MUL", "SUB", "TANH"])
#: Float operators that select or move, and round nothing.
_ROUNDS_NOTHING = frozenset(
    ["ABS", "FLOOR", "MAXIMUM", "MINIMUM", "NEG", "PAD", "PADV2", "RELU", "RELU6", "RELU_N1_TO_1"]
)
_FLOAT = close("r1.15's float kernels are not modelled: sums go in the order of LiteRT's reference")


def _knows(row: Kernel) -> bool:
    first = row.signature.slots[0]
    if row.op != "DEQUANTIZE" and first.is_only(*_LATER):
        return False
    if first.is_only(TensorType.INT16) and row.op not in _ON_INT16:
        return False
    return not any(type_.label in OPERATORS[row.op].came_after("1.15") for type_ in first.types or ())


def known(row: Kernel) -> Kernel | None:
    """Return the row with its promise, or None if its types came after r1.15."""
    if not _knows(row):
        return None
    is_float = row.signature.starts_with(TensorType.FLOAT32) and row.signature.is_float
    return replace(row, exactness=_FLOAT) if is_float and row.op not in _ROUNDS_NOTHING else row
