"""The computation of an element of an operator's output, from its input codes to its own code.

The trace function of each kernel, by the kernel's eval, which all profiles with the same body share.

An element of any other kernel ends at the kernel's result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.diagnosis.element import contractions, kernels
from tflq.diagnosis.element import kernels as gathering
from tflq.diagnosis.element import kernels as moving
from tflq.diagnosis.element import kernels as quantizing
from tflq.diagnosis.element.contractions import ElementSite, Index, Tracer, Working
from tflq.diagnosis.element.kernels import move
from tflq.engine.interpreter import Plan, State, run
from tflq.engine.interpreter.evaluation import bound, evaluate, inputs_of, variable
from tflq.engine.kernels import add_sub as add_in_blocks
from tflq.engine.kernels import (
    batch_matmul,
    conv_2d,
    depthwise_conv_2d,
    dequantize,
    joining,
    mean_sum,
    mul,
    pools,
    quantize,
    transpose_conv,
)
from tflq.engine.kernels import fully_connected_dense as fully_connected
from tflq.engine.kernels import mean_sum as mean_over_image
from tflq.engine.kernels import mean_sum_xnnpack as mean_sum_by_xnnpack
from tflq.engine.kernels import pools as average_pool_2d
from tflq.engine.kernels import quantize as quantize_by_xnnpack
from tflq.engine.kernels import quantize as quantize_optimized
from tflq.engine.kernels import transpose_conv as transpose_conv_in_blocks
from tflq.engine.kernels.families import binary as binary_kernels
from tflq.engine.kernels.families import scaled_sum, vector_blocks
from tflq.engine.kernels.families import unary as unary_kernels
from tflq.engine.numerics.stages import WorkedStep
from tflq.errors import OptionError
from tflq.typing import Array

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
    scaled_sum.eval_general: kernels.scaled_sum,
    add_in_blocks.eval_blocks: kernels.scaled_sum_in_blocks,
    mul.eval_quantized: kernels.product,
    binary_kernels.eval_plain: kernels.plain,
    unary_kernels.eval_table: kernels.tabulate,
    vector_blocks.eval_tables: kernels.tabulate_in_blocks,
    unary_kernels.eval_table_8bit: kernels.looked_up,
    quantize.eval_requantize: kernels.requantized,
    quantize.eval_float: quantizing.by_quotient,
    quantize_optimized.eval_blocks: quantizing.by_blocks,
    quantize_optimized.eval_scalar: quantizing.by_wide_quotient,
    joining.eval_concatenation: moving.concatenate,
    dequantize.eval_dequantize: kernels.dequantized,
    quantize_by_xnnpack.eval_float_xnnpack: quantizing.by_product,
    average_pool_2d.eval_quantized_reference: gathering.average,
    pools.eval_quantized: gathering.largest,
    mean_sum.eval_mean: gathering.mean,
    mean_over_image.eval_over_image: gathering.mean_by_pipeline,
    mean_sum_by_xnnpack.evaluate: gathering.scale_in_float32,
}


@dataclass(frozen=True, slots=True, eq=False)
class ElementTrace:
    """One element under `profile`, or another named source. `expected` is the kernel's own result.

    The last step's value equals `expected`. If `is_told` is false, the steps inside this kernel are unknown, and there
    is only the result.
    """

    op: str
    profile: str
    index: Index
    shape: Index  # of the output
    inputs: tuple[str, ...]  # the operands' names, by position; "" where absent
    working: Working
    expected: int | float | bool
    is_told: bool


def trace_element(plan: Plan, inputs: Mapping[int, Array], index: Sequence[int], output: int = 0) -> ElementTrace:
    """Trace one element of a single operator's output; `plan` holds that operator alone.

    Raises:
        OptionError: The index does not lie in the output.
    """
    with np.errstate(all="ignore"):
        return _trace(plan, inputs, tuple(index), output)


def _trace(plan: Plan, inputs: Mapping[int, Array], index: Index, output: int) -> ElementTrace:
    step = plan.steps[0]
    starting = {tensor: variable(plan, State(), tensor) for tensor in plan.variables}
    values = inputs_of(plan, step, {**starting, **inputs})
    out = run(plan, inputs, keep_all=True).values[step.outputs[output]]
    if len(index) != out.ndim or not all(0 <= i < size for i, size in zip(index, out.shape, strict=True)):
        raise OptionError(f"element {list(index)} does not lie in the output, whose shape is {list(out.shape)}")
    working = None if step.kernel.session else _work_out(plan, values, output, index, out.shape)
    expected = np.asarray(out[index]).item()
    return ElementTrace(
        op=step.op,
        profile=plan.profile.name,
        index=index,
        shape=out.shape,
        inputs=tuple("" if operand is None else operand.name for operand in step.node.inputs),
        working=working or Working((), (WorkedStep("result of the kernel", expected),)),
        expected=expected,
        is_told=working is not None,
    )


def _work_out(plan: Plan, values: Sequence[Array | None], output: int, index: Index, shape: Index) -> Working | None:
    """Return the computation, if it is known for this kernel, or if the kernel only moves elements."""
    step = plan.steps[0]
    prepared, _ = bound(plan, step, {}, values)
    site = ElementSite(step.node, prepared.data, plan.profile.arithmetic, values, index, shape)
    trace = TRACERS.get(prepared.eval)
    if trace is not None:
        return trace(site)
    return move(site, lambda operands: evaluate(prepared, step, operands)[output][index])
