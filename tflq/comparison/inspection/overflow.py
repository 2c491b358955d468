"""The range of an accumulator: bounds from an operator's weights and the range of its input, and its width.

A bound holds for every order of summation: positive and negative contributions are added separately, the bias among
them. It is reached if each tap takes the code that contributes most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tflq.engine.interpreter import make_plan
from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.families.contraction import weights_read_as_int8
from tflq.engine.kernels.kernel import Operand
from tflq.engine.numerics.contract import Range, centred_range
from tflq.engine.numerics.stages import type_range
from tflq.engine.profiles import Profile
from tflq.errors import TflqError
from tflq.model.ir import CARRIER, Model, TensorType, signed, view
from tflq.model.surgery.tap import single_operator
from tflq.typing import Array

#: Lowest and highest sum by output channel, int64.
Extremes = tuple[Array, Array]


@dataclass(frozen=True, slots=True)
class Bound:
    """The bounds of one operator's accumulator: lowest and highest value, and the channel."""

    index: int
    op: str
    low: int
    high: int
    channel: int  # the output channel with the largest magnitude
    signature: str = ""  # the signature that runs it, if the model has several

    @property
    def bits(self) -> int:
        """The narrowest two's complement word that holds both."""
        return max((~self.low if self.low < 0 else self.low).bit_length(), self.high.bit_length()) + 1


def overflow_bounds(model: Model, profile: Profile, signature: str | None = None) -> tuple[Bound, ...]:
    """Return the bounds of all operators of all signatures, or one, that accumulate codes with constant weights."""
    parts = signed(model, signature)
    return tuple(replace(bound, signature=part.name) for part in parts for bound in _bounds(part.model, profile))


def _bounds(model: Model, profile: Profile) -> Iterator[Bound]:
    for index in range(len(view(model).ops)):
        alone, _ = single_operator(model, index)
        try:
            step = make_plan(alone, profile).steps[0]
        except TflqError:
            continue
        extremes = _EXTREMES[step.op](step) if step.op in _EXTREMES and _reads_codes(step) else None
        if extremes is not None and extremes[0].size:
            low, high = extremes
            channel = int(np.argmax(np.maximum(high, ~low)))
            yield Bound(index, step.op, int(low.min()), int(high.max()), channel)


def _reads_codes(step: Step) -> bool:
    """Return whether its results, and its first operands, are quantized integers."""
    data = next((o for o in step.node.inputs if o is not None and o.is_quantized), None)
    return data is not None and all(CARRIER[o.type].kind in "iu" for o in (data, *step.node.outputs))


def _span(operand: Operand) -> Range:
    """Return the lowest and highest code minus zero point."""
    return centred_range(type_range(CARRIER[operand.type]), operand.zero_point)


def _weight(step: Step, x: int, w: int, bias: int, taps: Callable[[Array], Iterator[Array]]) -> Extremes | None:
    """Return the bounds; `taps` gives matrices (channels, taps) of weights: the sets of taps of one accumulator."""
    data, weights = step.node.input(x), step.node.input(w)
    if weights.value is None:
        return None
    is_short = data.type == TensorType.INT16 and step.op in ("CONV_2D", "DEPTHWISE_CONV_2D")
    codes = weights_read_as_int8(weights.value) if is_short else weights.value
    has_zero = data.type == TensorType.UINT8 or step.op == "FULLY_CONNECTED"
    centred = codes.astype(np.int32) - np.int32(weights.zero_point if has_zero else 0)
    sets = [_of_taps(part, _span(data)) for part in taps(centred)]
    low, high = np.min([s[0] for s in sets], axis=0), np.max([s[1] for s in sets], axis=0)
    operand = step.node.optional(bias)
    added = np.int64(0) if operand is None or operand.value is None else operand.value.reshape(-1).astype(np.int64)
    return low + np.minimum(added, 0), high + np.maximum(added, 0)


def _of_taps(weights: Array, span: Range) -> Extremes:
    """Return sums over taps of the least and the most that each can add, for any order."""
    above, below = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    lowest, highest = min(span[0], 0), max(span[1], 0)
    return above * lowest + below * highest, above * highest + below * lowest


def _convolve(step: Step) -> Extremes | None:
    return _weight(step, 0, 1, 2, lambda w: iter([w.reshape(w.shape[0], -1)]))


def _by_channel(step: Step) -> Extremes | None:
    return _weight(step, 0, 1, 2, lambda w: iter([w.reshape(-1, w.shape[-1]).T]))


def _spread_out(step: Step) -> Extremes | None:
    """Return the bounds: only taps a whole number of strides apart meet in one output pixel."""
    down, across = int(step.node.options["stride_h"]), int(step.node.options["stride_w"])

    def meeting(w: Array) -> Iterator[Array]:
        for y in range(min(down, w.shape[1])):
            for x in range(min(across, w.shape[2])):
                yield w[:, y::down, x::across].reshape(w.shape[0], -1)

    return _weight(step, 2, 1, 3, meeting)


def _matrix_product(step: Step) -> Extremes:
    """Return the bounds; both operands may hold any values."""
    x, y = step.node.input(0), step.node.input(1)
    length = x.shape[-2 if step.node.options["adj_x"] else -1]
    products = [a * b for a in _span(x) for b in _span(y)]
    return np.array([length * min(products)], np.int64), np.array([length * max(products)], np.int64)


def _product(step: Step) -> Extremes:
    products = [a * b for a in _span(step.node.input(0)) for b in _span(step.node.input(1))]
    return np.array([min(products)], np.int64), np.array([max(products)], np.int64)


def _reduce(step: Step) -> Extremes:
    """Return the bounds of the raw sum, and of the sum with the zero points subtracted."""
    x = step.node.input(0)
    return _times(x, prod(x.shape) // max(1, prod(step.node.outputs[0].shape)))


def _average(step: Step) -> Extremes:
    x, options = step.node.input(0), step.node.options
    taps = min(int(options["filter_height"]), x.shape[1]) * min(int(options["filter_width"]), x.shape[2])
    low, high = type_range(CARRIER[x.type])
    return np.array([min(0, taps * low)], np.int64), np.array([taps * high], np.int64)


def _times(x: Operand, count: int) -> Extremes:
    ends = (0, *type_range(CARRIER[x.type]), *_span(x))
    return np.array([count * min(ends)], np.int64), np.array([count * max(ends)], np.int64)


_EXTREMES: Mapping[str, Callable[[Step], Extremes | None]] = {
    "AVERAGE_POOL_2D": _average,
    "BATCH_MATMUL": _matrix_product,
    "CONV_2D": _convolve,
    "DEPTHWISE_CONV_2D": _by_channel,
    "FULLY_CONNECTED": _convolve,
    "MEAN": _reduce,
    "MUL": _product,
    "SUM": _reduce,
    "TRANSPOSE_CONV": _spread_out,
}
