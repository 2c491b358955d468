"""CONV_2D of the optimized resolver. Operands, options and refusals: kernels/conv_2d/reference.py, hybrid.py.

The sums are the reference's, and so are grouped convolutions. ruy's matrix product scales int8, uint8 after 2.14
(gemmlowp before it rounds as the reference does) and 16-bit activations with 32-bit accumulators. On AArch64, and with
the NEON code through SSE up to 2.12, products of one column have the matrix-vector kernel; up to 2.14 gemmlowp makes
the others on AArch64, up to 2.12 those of uint8. Eigen multiplies float32; up to 2.14 one pixel of one filter goes
through two accumulators. Hybrid filters of different scales: both scales are multiplied first.
Source: LiteRT 2.3 conv.cc EvalQuantizedPerChannel, EvalQuantized, EvalQuantizedPerChannel16x8, EvalFloat,
EvalHybridPerChannel; optimized/integer_ops/conv.h ConvPerChannel; optimized_ops.h Conv, HybridConvPerChannel,
AddBiasAndEvalActivationFunction; multithreaded_conv.h EigenTensorConvFunctor; ruy kernel_avx.cc, kernel_arm64.cc,
apply_multiplier.cc. TensorFlow 2.12 and 2.14 cpu_backend_gemm.h Gemm; cpu_backend_gemm_custom_gemv.h CustomGemv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from tflq.engine.kernels.conv_2d import hybrid, reference
from tflq.engine.kernels.conv_2d.hybrid import OpData, image_of, pixel_sums, scales_differ
from tflq.engine.kernels.conv_2d.reference import FloatData, channels_last, eval_float, prepare_quantized
from tflq.engine.kernels.conv_2d.shapes import shapes
from tflq.engine.kernels.families.activation import clamp_in_place
from tflq.engine.kernels.families.hybrid import centre_images
from tflq.engine.kernels.families.matrix_vector import Scaling, by_type, gemmlowp, ruy, scalar_gemmlowp
from tflq.engine.kernels.families.ordered_products import OrderedProduct
from tflq.engine.kernels.families.unclaimed import beside_dense, unclaimed_floats
from tflq.engine.kernels.families.vector_blocks import Prepare, gemm, requantizing
from tflq.engine.kernels.geometry.patches import patches_into
from tflq.engine.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.engine.kernels.validity import opt
from tflq.engine.numerics import eigen
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.engine.numerics.dynamic_range import Floats
from tflq.engine.numerics.stages import StageOf
from tflq.typing import Array


def multiply(scaling: Callable[[Arithmetic], StageOf]) -> Prepare:
    """Return a prepare whose sums are scaled by `scaling`, except for grouped convolutions."""
    otherwise = requantizing(prepare_quantized, scaling)

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        is_grouped = node.input(0).shape[-1:] != node.input(1).shape[-1:]
        return (prepare_quantized if is_grouped else otherwise)(node, arithmetic)

    return prepare


#: Columns, rows and, by name, `cache`: see eigen.product.
Product = Callable[..., Floats]
#: One row times one column, up to 2.14: two accumulators, not four.
_BY_COEFFICIENTS = partial(eigen.product, dot=eigen.coefficients)
#: Patches held at a time: a multiple of the four rows that Eigen takes together, so that parts equal the whole.
BLOCK = 4096


def prepare_by_eigen(node: Node, arithmetic: Arithmetic, product_of: Product = eigen.product) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    prepared = reference.prepare_float(node, arithmetic)
    data: FloatData = prepared.data
    if data.group_count > 1 or 0 in data.shape:
        return prepared
    if node.input(1).is_constant:
        columns, rows = data.weights.reshape(-1, data.shape[3]), prod(data.shape[:3])
        block = eigen.ordered_block(*columns.shape, rows, arithmetic.first_level_cache)
        product = OrderedProduct.of(columns, data.window, rows, block) if block else None
        if product is not None:
            return Prepared(prepared.shapes, replace(data, product=product), eval_float)
    evaluation = eval_by_eigen if node.input(1).is_constant else eval_variable
    bound = partial(evaluation, cache=arithmetic.first_level_cache, product_of=product_of)
    return Prepared(prepared.shapes, data, bound)


def eval_by_eigen(data: FloatData, x: Array, w: Array, bias: Array, *, cache: int, product_of: Product) -> Array:
    """Rounding: product and sum apart, in Eigen's order of k, bias last. Padding: products with 0."""
    out = np.empty(data.shape, np.float32)
    pixels = out.reshape(-1, data.shape[3])
    columns = data.weights.reshape(-1, data.shape[3])
    image, added = np.ascontiguousarray(x), bias.reshape(-1)
    for part in parts(len(pixels)):
        patches = np.empty((part.stop - part.start, len(columns)), np.float32)
        patches_into(image, 0, data.window, part.start, 0, patches)
        np.add(product_of(columns, patches, cache=cache), added, out=pixels[part])
    return clamp_in_place(out, *data.clamp)


def parts(rows: int) -> Iterator[slice]:
    """Yield blocks of rows; the last one includes the rest, which is no small product of its own."""
    whole = max(rows // BLOCK, 1)
    for block in range(whole):
        yield slice(block * BLOCK, (block + 1) * BLOCK if block < whole - 1 else rows)


def eval_variable(data: FloatData, x: Array, w: Array, bias: Array, *, cache: int, product_of: Product) -> Array:
    """Evaluate with weights that another operator computed."""
    return eval_by_eigen(replace(data, weights=channels_last(w)), x, w, bias, cache=cache, product_of=product_of)


def prepare_hybrid(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel; only the evaluation differs."""
    prepared = hybrid.prepare(node, arithmetic)
    w = node.input(1)
    is_ours = scales_differ(w) and node.input(0).shape[3] == w.shape[3]
    return Prepared(prepared.shapes, prepared.data, eval_per_channel) if is_ours else prepared


def eval_per_channel(data: OpData, x: Array, w: Array, bias: Array) -> Array:
    """Rounding: sum to float32, times the product of the scales, then bias."""
    codes, scales = centre_images(x)
    sums = pixel_sums(data, codes, (x, w, bias))
    out = sums.astype(np.float32)
    out *= scales[image_of(data, 0, len(out)), None] * data.scale
    out += bias.reshape(-1)
    out = out.reshape(data.shape)
    return clamp_in_place(out, *data.clamp)


def by(scaling: Scaling) -> Prepare:
    """Return a prepare of the reference's convolution with a scaling that depends on the product's shape."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        _, shape, groups = shapes(node)
        if groups > 1:
            return prepare_quantized(node, arithmetic)
        stage = scaling(arithmetic, shape[3], prod(node.input(1).shape[1:]), prod(shape[:3]))
        return prepare_quantized(node, replace(arithmetic, requantize=stage))

    return prepare


def rows(scaling: Scaling) -> tuple[Kernel, ...]:
    """Return the rows of both 8-bit types."""
    return (
        Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", by(scaling), (1, 8)),
        Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", by(scaling), (1, 8)),
    )


KERNELS = (
    *valid(
        opt(),
        Kernel("CONV_2D", "int8 int8|int4 int32 -> int8", multiply(gemm), (1, 8)),
        *unclaimed_floats(beside_dense(reference.ROWS)),
        Kernel("CONV_2D", "float32 float32 float32 -> float32", prepare_by_eigen, (1, 8)),
    ),
    *valid(
        opt("litert-1.0"),
        Kernel("CONV_2D", "uint8 uint8 int32 -> uint8", multiply(gemm), (1, 8)),
        Kernel("CONV_2D", "int16 int8|int4|int16 int32|int64 -> int16", multiply(gemm), (1, 8)),
        Kernel("CONV_2D", "float32 int8|uint8|int4 float32 -> float32", prepare_hybrid, (1, 8)),
    ),
    *valid(opt("litert-1.0", cpu="arm64"), *rows(ruy)),
    *valid(
        opt(until="tflite-2.14"),
        Kernel(
            "CONV_2D",
            "float32 float32 float32 -> float32",
            partial(prepare_by_eigen, product_of=_BY_COEFFICIENTS),
            (1, 8),
        ),
    ),
    *valid(opt(until="tflite-2.14", cpu="arm64"), *rows(gemmlowp)),
    *valid(opt(until="tflite-2.14", cpu="x86-64"), *by_type((), rows(scalar_gemmlowp))),
    *valid(opt(until="tflite-2.12", cpu="x86-64", vectors=True), *by_type(rows(ruy), rows(gemmlowp))),
)
