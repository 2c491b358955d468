"""Biases: the unit of an accumulator, and scales of weights for which a bias fits its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.model.ir import TensorType
from tflq.quantization.params import Params, extent
from tflq.quantization.recipe.recipe import TYPES, Mode
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.typing import Array

#: The greatest code of a bias: half of the accumulator's range, which leaves the other half to the products. The wide
#: one is half of the input range of the requantization of 64-bit accumulators.
#: Source: LiteRT 2.3 quantization_driver.cc kBiasMax; MultiplyByQuantizedMultiplier of int64, which takes 48 bits.
BIAS_REACH: Mapping[TensorType | None, int] = {TensorType.INT32: 2**30, TensorType.INT64: 2**46}
#: The greatest code of the bias in a channel whose weights are all zero, in that channel's own scale.
BIAS_ALONE = 2**15

RAISED = "scales of weights are raised so that the bias fits its type"


def bias_params(weights: Params, data: Params, type_: TensorType) -> Params:
    """Return the parameters of a bias, whose unit is the accumulator's: the float32 product of both scales.

    Under even weights it is odd, so that every accumulator is odd.

    Source: LiteRT 2.3 kernel_util.cc GetQuantizedConvolutionMultipler, which refuses others.
    """
    scale = (weights.scale * data.scale).astype(np.float32)
    return Params(type_, scale, np.zeros(scale.size, np.int64), 0, stride=weights.stride, residue=weights.stride - 1)


def data_params(scheme: Scheme, m: Multiplied, activations: Mapping[Form, Params]) -> Params:
    """Return the parameters of the activations that an operator multiplies by its weights."""
    position = scheme.model.graph.op(m.operator).inputs.index(m.data)
    return activations[scheme.read[m.operator, position]]


def fitted_weights(
    scheme: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params]
) -> dict[Slot, Params]:
    """Return the parameters of all weights, with scales under which every constant bias fits its type."""
    result = dict(weights)
    for m in scheme.multiplied:
        bias = None if m.bias is None else scheme.model.constants.get(m.bias)
        if bias is not None:
            slot, reach = (m.operator, m.position), BIAS_REACH[TYPES[mode_of(scheme, m)].bias]
            values, data = scheme.model.constants[m.tensor], data_params(scheme, m, activations)
            result[slot] = fitting(weights[slot], values, bias, data, reach)
    return result


def raised(before: Mapping[Slot, Params], after: Mapping[Slot, Params]) -> dict[int, str]:
    """Return a note, by index, for operators whose weights lost steps to their bias."""
    return {slot[0]: RAISED for slot in before if after[slot] is not before[slot]}


def fitting(weights: Params, values: Array, bias: NDArray[np.float32], data: Params, reach: int) -> Params:
    """Return `weights` with raised scales if the bias would exceed `reach` in the accumulator's unit.

    A channel whose weights are all zero gets the scale that gives its bias BIAS_ALONE steps. If nothing changes, the
    same object is returned.
    """
    step = data.scale.astype(np.float64)
    size = np.abs(bias.astype(np.float64).reshape(-1))
    if weights.scale.size == 1:
        size = size.max(initial=0.0, keepdims=True)
    channels = extent(values, weights.axis if weights.scale.size > 1 else None)
    alone = (channels.low == 0) & (channels.high == 0) & (size > 0)
    scale = np.where(size > step * weights.scale * reach, size / step / reach, weights.scale)
    scale = np.where(alone, size / step / BIAS_ALONE, scale).astype(np.float32)
    return weights if np.array_equal(scale, weights.scale) else replace(weights, scale=scale)


def mode_of(scheme: Scheme, weights: Multiplied) -> Mode:
    """Return the mode of the operator that multiplies these weights."""
    mode = scheme.modes[weights.operator]
    assert mode is not None  # float operators have no Multiplied
    return mode
