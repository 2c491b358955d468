"""TRANSPOSE_CONV up to 2.11: a fused activation is ignored.

Operands and refusals: tflq/kernels/transpose_conv/reference.py; 16-bit activations: transpose_conv.py here.
Source: TensorFlow 2.11 lite/kernels/transpose_conv.cc Eval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.transpose_conv.earlier import KERNELS as INT16
from tflq.kernels.transpose_conv.reference import KERNELS as REFERENCE
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def unactivated(prepare: Prepare) -> Prepare:
    """`prepare` without a fused activation."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        fields = {**node.options.fields, "fused_activation_function": 0}
        return prepare(replace(node, options=replace(node.options, fields=fields)), arithmetic)

    return prepared


def without_activations(rows: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """The rows without fused activations."""
    return tuple(replace(row, prepare=unactivated(row.prepare)) for row in rows)


_EARLIER = {row.signature for row in INT16}
KERNELS = valid(
    tflite(until="tflite-2.11"),
    *without_activations((*INT16, *(row for row in REFERENCE if row.signature not in _EARLIER))),
)
