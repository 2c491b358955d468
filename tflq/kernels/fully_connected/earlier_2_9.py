"""FULLY_CONNECTED up to 2.9: several weight scales read as 0, so that the output is its zero point, whatever goes in.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: TensorFlow 2.9 lite/core/subgraph.cc GetLegacyQuantization; lite/kernels/fully_connected.cc PrepareImpl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflq.kernels.fully_connected.earlier import prepare_int16
from tflq.kernels.fully_connected.reference import prepare_quantized
from tflq.kernels.fully_connected.tf1 import as_read
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def one_scale(prepare: Prepare) -> Prepare:
    """`prepare` with several scales of an operand read as 0."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        inputs = tuple(None if operand is None else as_read(operand) for operand in node.inputs)
        return prepare(replace(node, inputs=inputs), arithmetic)

    return prepared


KERNELS = valid(
    tflite(until="tflite-2.9"),
    Kernel("FULLY_CONNECTED", "int8 int8 int32? -> int8", one_scale(prepare_quantized), (1, 9)),
    Kernel("FULLY_CONNECTED", "int16 int8 int32|int64? -> int16", one_scale(prepare_int16), (1, 9)),
)
