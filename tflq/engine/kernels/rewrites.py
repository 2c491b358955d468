"""Rewrites of a model by the delegate and by XNNPACK before it runs: docs/xnnpack.md is generated from it.

Source: LiteRT xnnpack_delegate.cc; XNNPACK subgraph.c, each function by the day on which it appears in the history.
Releases were compared on drawn models, once as they are and once with every tensor as an output, with NaN, infinities,
zeros of both signs and subnormal numbers among the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tflq.engine.kernels.validity import When, tflite, xnnpack


class Effect(str, Enum):
    """The effect of a rewrite on results."""

    NONE = "none"  # no bit differs
    BITS = "other bits"
    UNWRITTEN = "a tensor is never written"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rewrite: what becomes what, its function and day, and what it does.

    `when` is the condition under which its bits or missing tensors are reproduced; None if it has no effect, or none
    that a profile reproduces. `where` names the file that does so, or the reason why none does.
    """

    what: str
    function: str
    day: str
    effect: Effect
    when: When | None = None
    where: str = ""


REWRITES = (
    Rewrite(
        "DEQUANTIZE of a float16 or int8 constant, DENSIFY of a sparse one: unpacked once",
        "Delegate::PrepareOpsToDelegate",
        "2020",
        Effect.UNWRITTEN,
        tflite(resolvers="xnnpack"),
        "tflq/engine/interpreter/unpacking.py",
    ),
    Rewrite(
        "MUL of an 8-bit tensor by itself: a square, by a table",
        "optimize_common_subgraphs_mul_to_sqr",
        "2025-09-03",
        Effect.BITS,
        xnnpack("litert-2.1"),
        "tflq/engine/kernels/mul/xnnpack.py. Seen since 2.1.0; 2.1.0 and 2.1.1 round half away",
    ),
    Rewrite(
        "operators of one varying operand, from 8-bit codes to 8-bit codes: one table",
        "xnn_subgraph_fuse_unary_quantized_into_lut",
        "2025-05-22",
        Effect.BITS,
        xnnpack("litert-2.1"),
        "tflq/engine/interpreter/chains.py: only MUL of a tensor by itself has other bits there, those of a product",
    ),
    Rewrite(
        "SUM or MEAN of squares of floats: one sum of squares",
        "optimize_common_subgraphs_reduce_sum_to_square",
        "2025-09-03",
        Effect.BITS,
        xnnpack("litert-2.1", cpu="x86-64"),
        "tflq/engine/interpreter/squares.py",
    ),
    Rewrite(
        "BATCH_MATMUL of floats by a dequantized int8 matrix, zero point 0: codes are read, the sum is scaled",
        "rewrite_dequant_bmm_at",
        "2026-05-05",
        Effect.BITS,
        xnnpack("litert-2.1", cpu="x86-64"),
        "tflq/engine/interpreter/matrices.py. Seen in 2.1.6, not in 2.1.0",
    ),
    Rewrite(
        "RELU, RELU6 or RELU_N1_TO_1 after MAX_POOL_2D: its activation",
        "optimize_common_subgraphs_merge_clamps",
        "2025-10-29",
        Effect.BITS,
        None,
        "not reproduced: only -0 differs, which becomes +0. Seen since 1.4, there in xnn_subgraph_fusion",
    ),
    Rewrite(
        "the same activations after CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, AVERAGE_POOL_2D or another clamp",
        "optimize_common_subgraphs_merge_clamps",
        "2025-10-29",
        Effect.NONE,
    ),
    Rewrite(
        "MAXIMUM or MINIMUM with a constant number: a clamp",
        "optimize_common_subgraphs_min_max_to_clamp",
        "2025-10-29",
        Effect.NONE,
    ),
    Rewrite("a clamp without limits: removed", "optimize_common_subgraphs_spurious_clamps", "2025-10-29", Effect.NONE),
    Rewrite(
        "PAD with zeros before CONV_2D or DEPTHWISE_CONV_2D with VALID padding: its padding",
        "xnn_subgraph_fusion",
        "2022-06-24",
        Effect.NONE,
    ),
    Rewrite("copies: joined with the operator before or after", "xnn_subgraph_fusion", "2022-06-24", Effect.NONE),
    Rewrite(
        "RESHAPE and EXPAND_DIMS in a row, or of a constant: one, or none",
        "optimize_common_subgraphs_merge_reshapes, optimize_common_subgraphs_static_reshapes",
        "2025-10-28",
        Effect.NONE,
    ),
    Rewrite(
        "TRANSPOSE before the second operand of BATCH_MATMUL or FULLY_CONNECTED: an option",
        "optimize_common_subgraphs_gemm_rhs_transpose",
        "2025-11-05",
        Effect.NONE,
    ),
    Rewrite(
        "x / x, x - x, x + 0, x * 1, sums of negations: simplified",
        "optimize_common_subgraphs_binary_to_const, ..._binary_const_noop, ..._simplify_binary_neg",
        "2025-11-03",
        Effect.NONE,
        None,
        "switched off in the source, and without effect in every release",
    ),
    Rewrite(
        "a broadcast whose readers broadcast: removed",
        "optimize_common_subgraphs_broadcast",
        "2025-10-28",
        Effect.NONE,
        None,
        "the delegate takes no operator that becomes a broadcast",
    ),
    Rewrite(
        "left matrices: packed before the product",
        "xnn_subgraph_optimize_packed_lhs",
        "2025-06-06",
        Effect.NONE,
        None,
        "on x86-64; on AArch64 it was not compared",
    ),
    Rewrite(
        "float32 to float16 where the model's metadata allow it and the processor has float16 arithmetic",
        "xnn_subgraph_rewrite_for_fp16, widen_fp16_accumulators, xnn_subgraph_pack_static_values_to_fp16",
        "2022",
        Effect.BITS,
        None,
        "not reproduced: AVX-512 FP16 or AArch64 with float16, and metadata `reduced_precision_support`",
    ),
    Rewrite(
        "images to planes of channels where weights are sparse",
        "xnn_subgraph_rewrite_for_nchw",
        "2020",
        Effect.BITS,
        None,
        "not reproduced: without effect on x86-64 in a model made for it; not compared on AArch64",
    ),
)
