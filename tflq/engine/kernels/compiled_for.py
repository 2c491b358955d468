"""Custom operators that hold code for one accelerator: only that accelerator computes their results.

Sources: ethos-u-vela 4 (tflite_writer.py, CustomType), Coral Edge TPU compiler's output (edgetpu.h, kCustomOp).
"""

from __future__ import annotations

from collections.abc import Mapping

from tflq.errors import UnsupportedError
from tflq.model.ir import GraphView

#: Custom operator -> who compiled the operators in it, and for what.
COMPILED: Mapping[str, str] = {
    "ethos-u": "Vela compiled operators into it for an Arm Ethos-U NPU",
    "edgetpu-custom-op": "the Edge TPU compiler compiled operators into it for a Coral Edge TPU",
}


def refuse_compiled(graph: GraphView) -> None:
    """Raise an UnsupportedError if a custom operator holds compiled code."""
    for op in graph.ops:
        if op.code.custom_code in COMPILED:
            reason = f"a custom operator: {COMPILED[op.name]}, which alone runs it; use the model from before that"
            raise UnsupportedError(op.name, index=op.index, reason=reason)
