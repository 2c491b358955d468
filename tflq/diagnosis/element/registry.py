"""The trace function of each kernel, by the kernel's eval, which all profiles with the same body share.

An element of any other kernel ends at the kernel's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflq.diagnosis.element import binary, contractions, unary
from tflq.diagnosis.element import movement as moving
from tflq.diagnosis.element import pooling as gathering
from tflq.diagnosis.element import quantize as quantizing
from tflq.diagnosis.element.steps import Tracer
from tflq.engine.kernels import concatenation, max_pool_2d
from tflq.engine.kernels.add_sub import optimized as add_in_blocks
from tflq.engine.kernels.average_pool_2d import reference as average_pool_2d
from tflq.engine.kernels.batch_matmul import reference as batch_matmul
from tflq.engine.kernels.conv_2d import reference as conv_2d
from tflq.engine.kernels.depthwise_conv_2d import reference as depthwise_conv_2d
from tflq.engine.kernels.dequantize import reference as dequantize
from tflq.engine.kernels.families import binary as binary_kernels
from tflq.engine.kernels.families import scaled_sum, two_tables
from tflq.engine.kernels.families import unary as unary_kernels
from tflq.engine.kernels.fully_connected import dense as fully_connected
from tflq.engine.kernels.mean_sum import images as mean_over_image
from tflq.engine.kernels.mean_sum import reference as mean_sum
from tflq.engine.kernels.mean_sum import xnnpack as mean_sum_by_xnnpack
from tflq.engine.kernels.mul import reference as mul
from tflq.engine.kernels.quantize import optimized as quantize_optimized
from tflq.engine.kernels.quantize import reference as quantize
from tflq.engine.kernels.quantize import xnnpack as quantize_by_xnnpack
from tflq.engine.kernels.transpose_conv import optimized as transpose_conv_in_blocks
from tflq.engine.kernels.transpose_conv import reference as transpose_conv

TRACERS: Mapping[Callable[..., Any], Tracer] = {
    conv_2d.eval_quantized: contractions.convolved,
    conv_2d.eval_variable: contractions.variable(contractions.convolved, 2),
    depthwise_conv_2d.eval_quantized: contractions.convolved_by_channel,
    depthwise_conv_2d.eval_variable: contractions.variable(contractions.convolved_by_channel, 2),
    fully_connected.eval_quantized: contractions.dense,
    fully_connected.eval_variable: contractions.variable(contractions.dense, 2),
    transpose_conv.eval_quantized: contractions.spread_out,
    transpose_conv.eval_variable: contractions.variable(contractions.spread_out, 3),
    transpose_conv_in_blocks.eval_uint8: contractions.spread_out_in_blocks,
    batch_matmul.eval_quantized: contractions.matrix_product,
    batch_matmul.eval_sums: contractions.sum_codes,
    scaled_sum.eval_general: binary.scaled_sum,
    add_in_blocks.eval_blocks: binary.scaled_sum_in_blocks,
    mul.eval_quantized: binary.product,
    binary_kernels.eval_plain: binary.plain,
    unary_kernels.eval_table: unary.tabulate,
    two_tables.eval_tables: unary.tabulate_in_blocks,
    unary_kernels.eval_table_8bit: unary.looked_up,
    quantize.eval_requantize: unary.requantized,
    quantize.eval_float: quantizing.by_quotient,
    quantize_optimized.eval_blocks: quantizing.by_blocks,
    quantize_optimized.eval_scalar: quantizing.by_wide_quotient,
    concatenation.eval_concatenation: moving.concatenate,
    dequantize.eval_dequantize: unary.dequantized,
    quantize_by_xnnpack.eval_float: quantizing.by_product,
    average_pool_2d.eval_quantized: gathering.average,
    max_pool_2d.eval_quantized: gathering.largest,
    mean_sum.eval_mean: gathering.mean,
    mean_over_image.eval_over_image: gathering.mean_by_pipeline,
    mean_sum_by_xnnpack.evaluate: gathering.scale_in_float32,
}
