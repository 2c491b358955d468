"""16-bit activations in TensorFlow Lite Micro: the bias's own type decides how wide the accumulator is.

Source: tflite-micro (October 2026), conv.cc ConvEval, fully_connected.cc FullyConnectedEval (requires_int32_accum).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import Any, cast

from tflq.engine.kernels.kernel import Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def as_wide_as_its_bias(prepare: Prepare) -> Prepare:
    """Return `prepare` with the bias's own type as the option quantized_bias_type."""

    def prepared(node: Node, arithmetic: Arithmetic) -> Prepared:
        fields = ChainMap(
            {"quantized_bias_type": int(node.input(2).type)}, cast(MutableMapping[str, Any], node.options.fields)
        )
        return prepare(replace(node, options=replace(node.options, fields=fields)), arithmetic)

    return prepared
