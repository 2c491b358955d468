"""FULLY_CONNECTED of float32 by XNNPACK. Operands and options: tflq/engine/kernels/fully_connected/reference.py.

A chain of fused multiply-adds from the bias on.
Source: LiteRT 2.3 xnnpack_delegate.cc VisitFullyConnectedNode; XNNPACK's fully_connected_nc_f32, f32-gemm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.delegation import delegate, has_shape, is_static, of_no_narrower_bias, of_one_width
from tflq.engine.kernels.families.contraction import bias_of
from tflq.engine.kernels.families.fused_products import FusedProduct, open_range
from tflq.engine.kernels.filling import Call, filling
from tflq.engine.kernels.fully_connected.shapes import SPARSE_VERSION, of_whole_rows, output_shape
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, Shape, valid
from tflq.engine.kernels.validity import xnnpack
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.codes import NumberClamp
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants. `product` is None if the weights are unpacked when the model runs."""

    shape: Shape  # of the output
    rows: int
    clamp: NumberClamp
    product: FusedProduct | None


def takes(node: Node) -> bool:
    """Return whether weights and bias are constant, no operand is empty, and XNNPACK has the activation."""
    bias = node.optional(2)
    return (
        node.version != SPARSE_VERSION
        and has_shape(node.input(0))
        and has_shape(node.input(1), 2, 2)
        and is_static(node.input(1))
        and (bias is None or (is_static(bias) and has_shape(bias)))
        and int(node.options["fused_activation_function"]) <= 3
    )


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare the panels of constant weights."""
    shape, w = output_shape(node), node.input(1)
    rows = int(np.prod(shape[:-1]))
    product = FusedProduct.of_rows(w.value.T, rows) if w.value is not None else None
    return Prepared(
        (shape,), OpData(shape, rows, open_range(node), product), eval_variable if product is None else evaluate
    )


@filling(lambda data, *_: (data.shape, np.float32))
def evaluate(data: OpData, out: Array, x: Array, w: Array, bias: Array | None = None) -> Call:
    """Rounding: one for each product and sum, in order of k, from the bias on."""
    assert data.product is not None
    units = data.shape[-1]
    image = np.ascontiguousarray(x).reshape(-1)[: data.rows * data.product.length].reshape(1, 1, data.rows, -1)
    return data.product.into(image, bias_of(bias, units, np.float32), data.clamp, out.reshape(-1, units))


def eval_variable(data: OpData, x: Array, w: Array, bias: Array | None = None) -> Array:
    """Evaluate with weights that another operator unpacked."""
    return evaluate(replace(data, product=FusedProduct.of_rows(np.asarray(w).T, data.rows)), x, w, bias)


_ROW = of_whole_rows(Kernel("FULLY_CONNECTED", "float32 float32 float32? -> float32", prepare, (1, 14)))

KERNELS = (
    *valid(xnnpack("litert-2.1", cpu="x86-64"), delegate(_ROW, of_no_narrower_bias(takes))),
    *valid(xnnpack("litert-2.1", "litert-2.1", cpu="x86-64"), delegate(_ROW, of_one_width(takes))),
)
