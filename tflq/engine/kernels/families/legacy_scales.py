"""Operands as kernels see them that know one scale for each tensor: several read as scale 0, zero point 0.

Source: LiteRT 2.3 core/subgraph.cc GetLegacyQuantization; TensorFlow 1.15 to 2.14, the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tflq.engine.kernels.kernel import Node, Operand, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.model.ir import Quantization

Prepare = Callable[[Node, Arithmetic], Prepared]
_NONE = Quantization(np.zeros(1, np.float32), np.zeros(1, np.int64))


def as_read(operand: Operand) -> Operand:
    """Return the operand, with scale and zero point 0 if it has several."""
    quantization = operand.quantization
    several = quantization is not None and len(quantization.scale) > 1
    return replace(operand, quantization=_NONE) if several else operand


def first_scale(operand: Operand) -> Operand:
    """Return the operand with the first of its scales and zero points."""
    q = operand.quantization
    if q is None or len(q.scale) <= 1:
        return operand
    return replace(operand, quantization=replace(q, scale=q.scale[:1], zero_point=q.zero_point[:1]))


def by_first_scales(prepare: Prepare) -> Prepare:
    """Return a prepare that reads the first of several scales. Source: elementwise.cc GenericPrepare."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        inputs = tuple(None if operand is None else first_scale(operand) for operand in node.inputs)
        return prepare(replace(node, inputs=inputs, outputs=tuple(map(first_scale, node.outputs))), arithmetic)

    return prepared


def one_scale(prepare: Prepare) -> Prepare:
    """Return a prepare that reads several scales of an operand as 0."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        inputs = tuple(None if operand is None else as_read(operand) for operand in node.inputs)
        return prepare(replace(node, inputs=inputs), arithmetic)

    return prepared


def only_one_scale(prepare: Prepare) -> Prepare:
    """Return a prepare that refuses weights with several scales."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        w = node.input(1)
        count = 0 if w.quantization is None else len(w.quantization.scale)
        if count > 1:
            node.reject("this release takes no scales by channel here", w, expected="one scale", got=count)
        return prepare(node, arithmetic)

    return prepared
