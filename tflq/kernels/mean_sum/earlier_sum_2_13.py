"""SUM up to 2.13: codes are added as they are, and wrap, where both quantizations are equal; in 2.13 8-bit types that
are rescaled are read as what they are. 16 bits are never rescaled.

Operands and options: tflq/kernels/mean_sum/sum.py.
Source: TensorFlow 2.13 lite/kernels/reduce.cc EvalSum; reference/reduce.h ReduceGeneric, QuantizedMeanOrSum.
"""

from __future__ import annotations

from collections.abc import Callable

from tflq.kernels.families.reduction import AXES, reduced_axes
from tflq.kernels.kernel import Kernel, Node, Prepared, valid
from tflq.kernels.mean_sum import sum as reference
from tflq.kernels.mean_sum.tf1_mean import same_quantization
from tflq.kernels.mean_sum.tf1_sum import eval_codes
from tflq.kernels.validity import tflite
from tflq.numerics.arithmetic import Arithmetic

Prepare = Callable[[Node, Arithmetic], Prepared]


def codes_where_equal(rescale: Prepare) -> Prepare:
    """Return a prepare that adds plain codes if both quantizations are equal, and otherwise rescales their sums."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        if not same_quantization(node):
            return rescale(node, arithmetic)
        reduced = reduced_axes(node)
        return Prepared((reduced.shape,), reduced, eval_codes)

    return prepare


def prepare_rescaled(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Prepare like the reference kernel, rescaling included."""
    return reference.prepare_quantized(node, arithmetic, node.input(0).type.label)


def refuse_int16(node: Node, arithmetic: Arithmetic) -> Prepared:
    """Refuse 16-bit sums whose quantization differs from the input's: the release does not rescale them."""
    x, y = node.input(0), node.outputs[0]
    node.refuse("16 bits are not rescaled", y, expected=x.scale, got=y.scale)


INT16 = Kernel("SUM", "int16 int32 -> int16", codes_where_equal(refuse_int16), (1, 2), AXES)
KERNELS = valid(
    tflite(until="tflite-2.13"),
    *(Kernel("SUM", f"{t} int32 -> {t}", codes_where_equal(prepare_rescaled), (1, 2), AXES) for t in ("uint8", "int8")),
    INT16,
)
