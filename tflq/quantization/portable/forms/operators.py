"""Operators that several forms write."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import OperatorView, TensorSpec
from tflq.model.ir.schema import enum
from tflq.quantization.portable.forms.editing import Editing

VALID = enum("Padding")["VALID"]

#: The greatest number of weights that a form writes; greater operators stay.
_MOST_WEIGHTS = 1 << 24


def fits(*sizes: int) -> bool:
    """Return whether a form may write weights of these sizes."""
    return prod(sizes) <= _MOST_WEIGHTS


def reshaped(editing: Editing, operator: OperatorView, tensor: int, shape: Sequence[int]) -> int:
    """Return a tensor of the result in another shape; its first dimension may change at run time."""
    spec = editing.spec(tensor)
    result = editing.tensor(spec, "/image", shape=tuple(shape))
    write_reshape(editing, operator, tensor, result, spec, tuple(shape))
    return result


def write_reshape(
    editing: Editing,
    operator: OperatorView,
    tensor: int,
    result: int,
    signed: TensorSpec,
    shape: tuple[int, ...] | None = None,
) -> None:
    """Write a RESHAPE; the first dimension is left to the runtime if that of `signed` changes."""
    sizes = list(editing.spec(result).shape if shape is None else shape)
    if signed.shape_signature and signed.shape_signature[0] < 0:
        sizes[0] = -1
    numbers = np.array(sizes, np.int32)
    operands = [tensor, editing.constant("shape", numbers)]
    editing.operator("RESHAPE", operands, [result], operator.index, "ReshapeOptions", new_shape=numbers)


def write_depthwise(
    editing: Editing,
    operator: OperatorView,
    taken: int,
    result: int,
    weights: NDArray[np.float32],
    bias: NDArray[np.float32],
    strides: tuple[int, int] = (1, 1),
    fused: int = 0,
) -> None:
    """Write a DEPTHWISE_CONV_2D without padding; weights are [1, height, width, channels]."""
    name = operator.output().name or operator.name
    operands = [taken, editing.constant(f"{name}/weights", weights), editing.constant(f"{name}/bias", bias)]
    editing.operator(
        "DEPTHWISE_CONV_2D",
        operands,
        [result],
        operator.index,
        "DepthwiseConv2DOptions",
        padding=VALID,
        stride_h=strides[0],
        stride_w=strides[1],
        depth_multiplier=1,
        fused_activation_function=fused,
    )
