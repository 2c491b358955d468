"""Scales with which all runtimes requantize alike: multipliers just below a power of two, accumulators that are odd.

An accumulator `acc` becomes a code by round(acc * real), real = s_x * s_w / s_y. Runtimes round twice, or once, or a
float32 product. If real is just below 2**-k, the 31-bit mantissa of the double form is 2**31 - c with a small c, so its
first rounding gives acc itself while |acc| * c < 2**30: only the shift by k rounds. The forms then differ at most in
ties, acc = 2**(k - 1) modulo 2**k. Even weights and an odd bias make every accumulator odd, which is no tie for k >= 2.
The same holds for a product of two odd numbers, as in MUL.

Nothing here proves that: `tflq prove` does, for the finished model.

Sources of real: LiteRT 2.3 kernel_util.cc PopulateConvolutionQuantizationParams (float64) and
GetQuantizedConvolutionMultipler (float32 product, float64 quotient), mul.cc Prepare (float32); XNNPACK
xnn_create_convolution2d_nhwc_qs8_qc8w (float32).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.multiplier import NEAR
from tflq.model.ir import TensorType
from tflq.quantization.params import Params
from tflq.quantization.portable.factors import Product, products
from tflq.quantization.portable.sums import SUMS, align, sums, with_scale
from tflq.quantization.ranges.biases import data_params
from tflq.quantization.scheme.constraints import Constraints
from tflq.quantization.scheme.operands import Multiplied
from tflq.quantization.scheme.scheme import Form, Scheme, Slot
from tflq.typing import Array

Reals = NDArray[np.float64]
Floats = NDArray[np.float32]

#: Weights are multiples of this, at most the greatest int8 code of that kind; biases are odd.
STRIDE, MOST_CODE = 2, 126
#: The least shift: a shift by one makes every odd accumulator a tie. The greatest: XNNPACK takes none beyond.
LEAST_SHIFT, MOST_SHIFT = 2, 31
#: Rounds in which scales of outputs grow until every shift is at least LEAST_SHIFT.
_ROUNDS = 8
#: The factor by which a scale exceeds its bound, so that rounding to float32 leaves it above.
_SLACK = 1 + 2.0**-22

#: Constraints on the scheme of a portable model. Releases up to 2.9 read scales for each channel of dense weights as 0.
CONSTRAINTS = Constraints(joins_rescale=False, own_constants=SUMS, one_scale=frozenset({"FULLY_CONNECTED"}))


def portable_scales(
    plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params], inside: Collection[int]
) -> tuple[dict[Form, Params], dict[Slot, Params]]:
    """Return parameters of activations and weights of operators `inside` with which all runtimes requantize alike.

    Operands and results of sums get scales powers of two apart. Scales of outputs grow where a shift would be too
    small. One scale of every product of activations moves so that the multiplier is a power of two.
    """
    added, chosen = sums(plan, inside), dict(activations)
    multiplied = products(plan, added, inside)
    for _ in range(_ROUNDS):
        grown = align(plan, added, _grown(plan, multiplied, chosen, weights, inside))
        if grown == chosen:
            break
        chosen = grown
    return chosen, {**weights, **_portable_weights(plan, chosen, weights, inside)}


def _grown(
    plan: Scheme,
    multiplied: Sequence[Product],
    activations: Mapping[Form, Params],
    weights: Mapping[Slot, Params],
    inside: Collection[int],
) -> dict[Form, Params]:
    """Return the activations with greater scales where one is too small for its operator, in one pass."""
    chosen = dict(activations)

    def grow(group: Form, least: float) -> None:
        scale = np.float32(least)
        if scale > chosen[group].scale[0] and group not in plan.fixed:
            chosen[group] = with_scale(chosen[group], scale, is_centred=group in plan.centred)

    for m in plan.multiplied:
        group = output_group(plan, m.operator)
        if group is not None and m.bias is not None and m.operator in inside:
            reach = _reach(weights[m.operator, m.position]).max(initial=0.0)
            grow(group, float(data_params(plan, m, chosen).scale[0]) * reach * 2.0**LEAST_SHIFT * _SLACK)
    for product in multiplied:
        grow(product.moving, float(_moved_scale(product, chosen)))
    return chosen


def _moved_scale(product: Product, activations: Mapping[Form, Params]) -> np.float32:
    """Return the scale that a product's moving group grows to."""
    own, result = activations[product.moving].scale[0], activations[product.result].scale[0]
    other = activations[product.other].scale[0]
    if product.moving == product.result:
        one, second = (activations[operand].scale[0] for operand in product.operands)
        return product_scale(one, second, own)
    shift = grid_shifts(np.array([float(own) * float(other) / float(result) * (1 - NEAR)]))
    return np.float32(weight_scales(other, result, shift)[0])


def output_group(plan: Scheme, operator: int) -> Form | None:
    """Return the group of an operator's only result, if that has 8 bits."""
    outputs = plan.model.graph.op(operator).outputs
    form = plan.results.get(outputs[0]) if len(outputs) == 1 else None
    return form if form is not None and form[1] == TensorType.INT8 else None


def _portable_weights(
    plan: Scheme, activations: Mapping[Form, Params], weights: Mapping[Slot, Params], inside: Collection[int]
) -> dict[Slot, Params]:
    moved = {}
    for m in plan.multiplied:
        slot, group = (m.operator, m.position), output_group(plan, m.operator)
        if group is not None and m.bias is not None and m.operator in inside:
            data, output = data_params(plan, m, activations), activations[group]
            moved[slot] = _on_grid(plan, m, weights[slot], data.scale[0], output.scale[0])
    return moved


def _reach(params: Params) -> Reals:
    """Return the scales that even codes need for the same range."""
    return params.scale.astype(np.float64) * params.limits[1] / MOST_CODE


def _on_grid(plan: Scheme, m: Multiplied, params: Params, data: np.float32, output: np.float32) -> Params:
    """Return weights with portable scales: for each channel the next greater or the next smaller one."""
    values = plan.model.constants[m.tensor]
    ratio = _reach(params) * float(data) / float(output)
    shift = grid_shifts(ratio)
    wide = replace(params, stride=STRIDE, scale=weight_scales(data, output, shift))
    narrow = replace(wide, scale=weight_scales(data, output, np.minimum(shift + 1, MOST_SHIFT)))
    axis = params.axis if params.scale.size > 1 else None
    is_better = _squared_error(narrow, values, axis) < _squared_error(wide, values, axis)
    return replace(wide, scale=np.where(is_better, narrow.scale, wide.scale))


def _squared_error(params: Params, values: Array, axis: int | None) -> Reals:
    """Return the squared error of rounding, by channel."""
    squares = np.square(params.decode(params.encode(values)).astype(np.float64) - values)
    others = None if axis is None else tuple(d for d in range(values.ndim) if d != axis)
    return np.atleast_1d(squares.sum(axis=others))


def grid_shifts(multipliers: Reals) -> NDArray[np.int64]:
    """Return the shifts k of the powers of two 2**-k next above multipliers."""
    with np.errstate(divide="ignore"):
        return np.clip(np.floor(-np.log2(multipliers)), LEAST_SHIFT, MOST_SHIFT).astype(np.int64)


def weight_scales(data: np.float32, output: np.float32, shift: NDArray[np.int64]) -> Floats:
    """Return the greatest scales of weights whose multiplier is below 2**-shift in every runtime, [C] in float32."""
    scale = (np.exp2(-shift.astype(np.float64)) * float(output) / float(data)).astype(np.float32)
    while (over := multipliers(data, scale, output).max(axis=0) >= np.exp2(-shift.astype(np.float64))).any():
        scale = np.where(over, np.nextafter(scale, np.float32(0)), scale)
    return scale


def product_scale(one: np.float32, other: np.float32, least: np.float32) -> np.float32:
    """Return the smallest output scale from `least` up whose multiplier one * other / scale is below a power of two."""
    product = float(one) * float(other)
    shift = max(LEAST_SHIFT, int(np.ceil(-np.log2(product / float(least)) - NEAR)))
    scale = np.float32(product * 2.0**shift)
    while multipliers(one, np.full(1, other, np.float32), scale).max() >= 2.0**-shift:
        scale = np.nextafter(scale, np.float32(np.inf))
    return scale


def multipliers(data: np.float32, weights: Floats, output: np.float32) -> Reals:
    """Return the multipliers that runtimes compute in double precision, [2, C]: of the scales and of their product."""
    exact = float(data) * weights.astype(np.float64) / float(output)
    rounded = (data * weights).astype(np.float32).astype(np.float64) / float(output)
    return np.stack([exact, rounded])
