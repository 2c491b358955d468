"""CONV_2D of float32: patches times weights as Eigen multiplies matrices; grouped convolutions are the reference's.

Operands, options and refusals: tflq/kernels/conv_2d/reference.py.
Source: LiteRT 2.3 conv.cc EvalFloat; multithreaded_conv.h EigenTensorConvFunctor; optimized_ops.h Conv,
AddBiasAndEvalActivationFunction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tflq.kernels.conv_2d.reference import FloatData, channels_last, eval_float, prepare_float
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.ordered_products import OrderedProduct
from tflq.kernels.geometry.windows import patches_into
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics import eigen
from tflq.numerics.arithmetic import Arithmetic

#: Patches held at a time: a multiple of the four rows that Eigen takes together, so that parts equal the whole.
BLOCK = 4096


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Constants are the reference's."""
    prepared = prepare_float(node, arithmetic)
    data: FloatData = prepared.data
    if data.group_count > 1 or 0 in data.shape:
        return prepared
    if node.input(1).is_constant:
        columns, rows = data.weights.reshape(-1, data.shape[3]), prod(data.shape[:3])
        block = eigen.ordered_block(*columns.shape, rows, arithmetic.first_level_cache)
        product = OrderedProduct.of(columns, data.window, rows, block) if block else None
        if product is not None:
            return Prepared(prepared.shapes, replace(data, product=product), eval_float)
    evaluation = evaluate if node.input(1).is_constant else eval_variable
    return Prepared(prepared.shapes, data, partial(evaluation, cache=arithmetic.first_level_cache))


def evaluate(data: FloatData, x: Array, w: Array, bias: Array, *, cache: int) -> Array:
    """Rounding: product and sum apart, in Eigen's order of k, bias last. Padding: products with 0."""
    out = np.empty(data.shape, np.float32)
    pixels = out.reshape(-1, data.shape[3])
    columns = data.weights.reshape(-1, data.shape[3])
    image, added = np.ascontiguousarray(x), bias.reshape(-1)
    for part in parts(len(pixels)):
        patches = np.empty((part.stop - part.start, len(columns)), np.float32)
        patches_into(image, 0, data.window, part.start, 0, patches)
        np.add(eigen.product(columns, patches, cache=cache), added, out=pixels[part])
    return clamp_in_place(out, *data.clamp)


def parts(rows: int) -> Iterator[slice]:
    """Blocks of rows; the last one takes what is left over, and is no small product of its own."""
    whole = max(rows // BLOCK, 1)
    for block in range(whole):
        yield slice(block * BLOCK, (block + 1) * BLOCK if block < whole - 1 else rows)


def eval_variable(data: FloatData, x: Array, w: Array, bias: Array, *, cache: int) -> Array:
    """Weights that another operator computed."""
    return evaluate(replace(data, weights=channels_last(w)), x, w, bias, cache=cache)


KERNELS = valid(opt(), Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare, (1, 8)))
