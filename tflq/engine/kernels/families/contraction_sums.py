"""A contraction whose device limits sums on the way, with its fields: pairs of products, or the sum after each tap.

CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED are one sum over (tap, channel) in that order. Bias and scaling are the
row's own.
Sources of fields: x86 without VNNI (vpmaddubsw: codes without a sign times weights, pairs saturate at 16 bits),
accumulators of digital signal processors that saturate with each product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tflq.engine.kernels.families.contraction import Output
from tflq.engine.kernels.geometry.taps import read_tap
from tflq.engine.kernels.geometry.windows import Window, window
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.stated_fields import reader
from tflq.model.ir import TensorType
from tflq.typing import Array

#: The operators that have it.
OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
EXACT, PAIRS = "exact", "pairs saturate at 16 bits"
#: The values of each field. `width` counts bits of the sum after each tap, which saturates.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "products": (EXACT, PAIRS),
    "width": ("any", "16 bits", "18 bits", "20 bits", "24 bits", "32 bits"),
    "bias": ("last", "first"),
}
#: The largest number of products.
_MOST = 1 << 25
_FAR = np.int64(1) << np.int64(60)


@dataclass(frozen=True, slots=True)
class Sums:
    """One point of the grammar of sums. Fields are spelled as files of profiles spell them."""

    products: str = EXACT
    width: str = "any"
    bias: str = "last"


#: The reader of what a file states.
sums_of = reader(Sums, FIELDS, "a sum of products")


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `weights` are codes (O, KH, KW, C / groups), `first` the first input channel of an output's group."""

    window: Window
    shape: Shape
    weights: Array
    first: Array
    zero_point: int
    unsigned: int  # what makes codes unsigned for pairs of products
    output: Output
    point: Sums
    is_dense: bool  # rows, each an image of one pixel


def sum_by_rule(row: Kernel, point: Sums) -> Kernel:
    """Return the row whose sums are limited on the way."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = row.prepare(node, arithmetic)
        x, w, shape = node.input(0), node.input(1), prepared.shapes[0]
        output = getattr(prepared.data, "output", None)
        if not isinstance(output, Output) or w.value is None or w.value.dtype != np.int8 or shape is None:
            node.refuse("is no contraction of codes with constant weights of 8 bits")
        dense = node.op == "FULLY_CONNECTED"
        weights = w.value.reshape(len(w.value), 1, 1, -1) if dense else w.value
        weights = weights.transpose(3, 1, 2, 0) if node.op == "DEPTHWISE_CONV_2D" else weights
        depth, inputs = weights.shape[3], weights.shape[3] if dense else x.shape[3]
        at = Window.of_one_tap(1, 1) if dense else window(node, x.shape, (weights.shape[1], weights.shape[2]))
        node.check(int(np.prod(shape)) * weights[:1].size <= _MOST, "has too many products to add one by one")
        share = max(1, len(weights) // max(1, inputs // depth))
        first = np.arange(len(weights)) // share * depth
        unsigned = 128 if x.type == TensorType.INT8 else 0
        data = OpData(at, shape, weights.astype(np.int64), first, int(x.zero_point), unsigned, output, point, dense)
        return replace(prepared, data=data, eval=eval_sums)

    return replace(row, prepare=prepare, takes=None)


def eval_sums(data: OpData, x: Array, *_others: Array | None) -> Array:
    """Add the products in order, limited by the point; then scale. Padding: taps outside hold the zero point."""
    image = (x.reshape(-1, 1, 1, data.weights.shape[3]) if data.is_dense else x).astype(np.int64)
    bias = data.output.bias[: len(data.weights)].astype(np.int64)
    bits = 61 if data.point.width == "any" else int(data.point.width.split(" ")[0])
    high = (np.int64(1) << np.int64(bits - 1)) - 1
    at = data.window
    begins = bias if data.point.bias == "first" else np.zeros_like(bias)
    total = np.broadcast_to(np.clip(begins, -high - 1, high), (len(image), at.out_h, at.out_w, len(bias)))
    for ky, kx in product(range(data.weights.shape[1]), range(data.weights.shape[2])):
        taken, w = read_tap(image, at, ky, kx, data.zero_point), data.weights[:, ky, kx]
        if data.point.products == PAIRS:
            total = total + _pairs(data, taken, w)
            continue
        for c in range(w.shape[1]):
            total = np.clip(total + (taken[..., data.first + c] - data.zero_point) * w[:, c], -high - 1, high)
    if data.point.bias == "last":
        total = np.clip(total + bias, -high - 1, high)
    return data.output.pipeline(total, np.zeros_like(bias)).reshape(data.shape)


def _pairs(data: OpData, taken: Array, w: Array) -> Array:
    """Return the sums of one tap in pairs of 16 bits that saturate, less the zero point's part."""
    total = np.zeros((*taken.shape[:3], len(w)), np.int64)
    for c in range(0, w.shape[1], 2):
        pair = (taken[..., data.first + c] + data.unsigned) * w[:, c]
        if c + 1 < w.shape[1]:
            pair = pair + (taken[..., data.first + c + 1] + data.unsigned) * w[:, c + 1]
        total += np.clip(pair, -(2**15), 2**15 - 1)
    corrected: Array = total - (data.zero_point + data.unsigned) * w.sum(1)
    return corrected
