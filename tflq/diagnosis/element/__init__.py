"""The computation of one output element: the operands that it reads, and every step from their codes to its own."""

from tflq.diagnosis.element.contractions import Tap, Working
from tflq.diagnosis.element.trace import ElementTrace, trace_element

__all__ = ["ElementTrace", "Tap", "Working", "trace_element"]
