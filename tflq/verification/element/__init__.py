"""One output element worked out: which operands it reads, and every step from their codes to its own."""

from tflq.verification.element.trace import ElementTrace, trace_element
from tflq.verification.element.working import Tap, Working

__all__ = ["ElementTrace", "Tap", "Working", "trace_element"]
