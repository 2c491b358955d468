"""FULLY_CONNECTED, hybrid, as releases up to 2.14 have it: a symmetric scale is a product with 1/127.

Operands, options and refusals: tflq/kernels/fully_connected/reference_hybrid.py.
Source: TensorFlow 2.14 tensor_utils SymmetricQuantizeFloats, as the AArch64 wheel has it: built with float arithmetic
that may turn quotients into products.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.kernels.exactness import close
from tflq.kernels.fully_connected.arm64_hybrid import fused_matrix
from tflq.kernels.fully_connected.reference_hybrid import prepare_with
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic
from tflq.numerics.dynamic_range import Rows, quantize_rows


def quantize_by_product(x: Array, asymmetric: bool) -> Rows:
    """Quantize rows; the symmetric scale is the largest magnitude times float32(1 / 127), not divided by 127."""
    rows = quantize_rows(x, asymmetric)
    if asymmetric:
        return rows
    largest = np.abs(x).max(axis=1, initial=np.float32(0))
    scale = np.where(largest == 0, np.float32(1), largest * (np.float32(1) / np.float32(127)))
    return replace(rows, scale=scale.astype(np.float32))


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """The reference's, with other rows and another matrix."""
    return prepare_with(node, fused_matrix, quantize_by_product)


KERNELS = valid(
    tflite(until="tflite-2.14", cpu="arm64"),
    Kernel(
        "FULLY_CONNECTED",
        "float32 int8|uint8|int4|int2 float32? -> float32",
        prepare,
        (1, 14),
        session=True,
        exactness=close("activations quantized asymmetrically were not fitted"),
    ),
)
