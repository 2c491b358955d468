"""CONV_3D up to 2.14: patches times weights as Eigen multiplies matrices.

Operands, options and refusals: tflq/kernels/conv_3d/reference.py.
Source: TensorFlow 2.14 conv3d.cc EvalFloat; optimized_ops.h Conv3D; cpu_backend_gemm_eigen.cc.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from tflq.kernels.conv_3d import reference
from tflq.kernels.conv_3d import reference as conv_3d
from tflq.kernels.exactness import close
from tflq.kernels.families.activation import clamp_in_place
from tflq.kernels.families.unclaimed import unclaimed_floats
from tflq.kernels.geometry.volumes import OpData, Window3D
from tflq.kernels.geometry.windows import Axis
from tflq.kernels.kernel import Array, Kernel, Node, Prepared, valid
from tflq.kernels.validity import opt
from tflq.numerics import eigen
from tflq.numerics.arithmetic import Arithmetic


def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Constants are the reference's, and so are sums of dilated windows."""
    prepared = conv_3d.prepare(node, arithmetic)
    is_dilated = any(axis.dilation > 1 for axis in prepared.data.window)
    if is_dilated or 0 in prepared.data.shape:
        return prepared
    return replace(prepared, eval=partial(evaluate, cache=arithmetic.first_level_cache))


def evaluate(data: OpData, x: Array, w: Array, bias: Array | None = None, *, cache: int) -> Array:
    """Rounding: product and sum apart, in Eigen's order of k, bias last. Padding: products with 0."""
    columns = np.ascontiguousarray(w).reshape(-1, w.shape[4])
    sums = eigen.product(columns, patches(x, data.window).reshape(-1, len(columns)), cache=cache)
    if bias is not None:
        sums += bias.reshape(-1)
    return clamp_in_place(sums.reshape(data.shape), *data.clamp)


def patches(x: Array, window: Window3D) -> Array:
    """N, D, H, W, C to N, OD, OH, OW, KD * KH * KW, C; 0 outside of the volume."""
    taps = list(product(*(range(axis.kernel) for axis in window)))
    out = np.zeros((x.shape[0], *window.out, len(taps), x.shape[4]), np.float32)
    for number, tap in enumerate(taps):
        written, read = zip(*(_seen(axis, at) for axis, at in zip(window, tap, strict=True)), strict=True)
        out[(slice(None), *written, number)] = x[(slice(None), *read)]
    return out


def _seen(axis: Axis, tap: int) -> tuple[slice, slice]:
    """The positions at which that tap lies inside, and the elements that it meets there."""
    start = tap - axis.before
    first = max(0, -(start // axis.stride))
    last = min(axis.out, (axis.size - 1 - start) // axis.stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, last), slice(start + first * axis.stride, start + last * axis.stride, axis.stride)


DILATED = close("sums of dilated windows are not reproduced; others are the same bits")


KERNELS = (
    *valid(
        opt(until="tflite-2.14"),
        Kernel("CONV_3D", "float32 float32 float32? -> float32", prepare, (1, 1), exactness=DILATED),
    ),
    *valid(opt("litert-1.0"), *unclaimed_floats(reference.KERNELS)),
)
