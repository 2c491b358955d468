"""CONV_2D of 16-bit activations with a 32-bit bias in TensorFlow Lite Micro: the accumulator has 32 bits, too.

Operands and options as in the reference kernel; quantized_bias_type is ignored. CMSIS-NN gets no scratch buffer for
these models and writes nothing: refused.
Source: tflite-micro (October 2026), conv.cc ConvEval. tflite-micro (August 2026), cmsis_nn/conv.cc Prepare asks for a
buffer only if the bias has 64 bits or is absent; CMSIS-NN 99f736a, arm_convolve_s16 returns an error without one, which
a release build ignores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from tflq.engine.kernels.conv_2d.reference import prepare_float, prepare_quantized
from tflq.engine.kernels.families.bias_width import as_wide_as_its_bias
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared, valid
from tflq.engine.kernels.validity import SPEC, cmsis_nn, micro
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import UndefinedResultError
from tflq.model.ir import CARRIER, TensorType
from tflq.typing import Array


def refuse_int32_bias(node: Node, arithmetic: Arithmetic) -> NoReturn:
    """Refuse the operator: nothing is written."""
    raise UndefinedResultError(node.op, "16-bit activations with a 32-bit bias get no scratch buffer")


def prepare_optional(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a bias of zeros if there is none: 64 bits for 16-bit activations."""
    if node.optional(2) is not None:
        return prepare_quantized(node, arithmetic)
    channels, is_wide = node.input(1).shape[0], node.input(0).type == TensorType.INT16
    type_ = TensorType.INT64 if is_wide else TensorType.INT32
    fields = {**node.options.fields, "quantized_bias_type": int(type_)}
    node = replace(node, options=replace(node.options, fields=fields))
    zeros = Operand(-1, "", type_, (channels,), value=np.zeros(channels, CARRIER[type_]))
    bound = prepare_quantized(replace(node, inputs=(*node.inputs[:2], zeros)), arithmetic)
    return replace(bound, data=Unbiased(bound), eval=eval_unbiased)


def prepare_float_optional(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare with a bias of zeros if there is none."""
    if node.optional(2) is not None:
        return prepare_float(node, arithmetic)
    channels = node.input(1).shape[0]
    zeros = Operand(-1, "", TensorType.FLOAT32, (channels,), value=np.zeros(channels, np.float32))
    bound = prepare_float(replace(node, inputs=(*node.inputs[:2], zeros)), arithmetic)
    return replace(bound, data=Unbiased(bound), eval=eval_unbiased)


@dataclass(frozen=True, slots=True, eq=False)
class Unbiased:
    """A convolution that was prepared with a bias of zeros."""

    inner: Prepared


def eval_unbiased(data: Unbiased, x: Array, w: Array, bias: None = None) -> Array | tuple[Array, ...]:
    """Convolve without a bias."""
    return data.inner.eval(data.inner.data, x, w, np.zeros(w.shape[0], x.dtype))


KERNELS = (
    *valid(
        micro(),
        Kernel("CONV_2D", "int8 int8|int4 int32? -> int8", prepare_optional, (1, 8)),
        Kernel("CONV_2D", "int16 int8 int64? -> int16", prepare_optional, (1, 8)),
        Kernel("CONV_2D", "float32 float32 float32? -> float32", prepare_float_optional, (1, 8)),
    ),
    *valid(micro(SPEC), Kernel("CONV_2D", "int16 int8 int32 -> int16", as_wide_as_its_bias(prepare_quantized), (1, 8))),
    *valid(cmsis_nn(), Kernel("CONV_2D", "int16 int8 int32 -> int16", refuse_int32_bias, (1, 8))),
)
