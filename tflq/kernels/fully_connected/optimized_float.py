"""FULLY_CONNECTED of float32 as Eigen multiplies matrices.

Operands, options and refusals: tflq/kernels/fully_connected/reference.py.
Source: LiteRT 2.3 fully_connected.cc EvalFloat; optimized_ops.h FullyConnected; cpu_backend_gemm_eigen.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.contraction import bias_of
from tflq.kernels.families.ordered_products import OrderedProduct
from tflq.kernels.families.vector_blocks import Prepare
from tflq.kernels.fully_connected.reference import FloatData, eval_empty, eval_float, prepare_float, units_last
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics import eigen
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.eigen import Floats

#: Columns, rows and, by name, `cache`: see eigen.product.
Product = Callable[..., Floats]


def by(product: Product) -> Prepare:
    """A prepare whose sums `product` makes of (K, N) weights and (B, K) rows."""

    def evaluate(data: FloatData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
        """Rounding: product and sum apart, in Eigen's order of k, bias last."""
        length, units = data.weights.shape
        out = np.empty(data.shape, np.float32)
        sums = out.reshape(-1, units)
        rows = np.ascontiguousarray(x).reshape(-1)[: sums.shape[0] * length].reshape(-1, length)
        np.add(product(data.weights, rows, cache=cache), bias_of(bias, units, np.float32), out=sums)
        return clamp_in_place(out, *data.clamp)

    def eval_variable(data: FloatData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
        return evaluate(replace(data, weights=units_last(w)), x, w, bias, cache=cache)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        prepared = prepare_float(node, arithmetic)
        if prepared.eval is eval_empty:
            return prepared
        data: FloatData = prepared.data
        if node.input(1).is_constant:
            (length, units), count = data.weights.shape, prod(data.shape[:-1])
            block = eigen.ordered_block(length, units, count, arithmetic.first_level_cache)
            ordered = OrderedProduct.of_rows(data.weights, count, block) if block else None
            if ordered is not None:
                return replace(prepared, data=replace(data, product=ordered), eval=eval_float)
        evaluation = evaluate if node.input(1).is_constant else eval_variable
        return replace(prepared, eval=partial(evaluation, cache=arithmetic.first_level_cache))

    return prepare


def rows(product: Product) -> tuple[Kernel, ...]:
    """The form of floats throughout."""
    return (Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", by(product), (1, 14)),)


KERNELS = valid(opt("litert-1.0"), *rows(eigen.product))
