"""Convolutions of XNNPACK up to LiteRT 2.1 with SAME padding whose windows do not reach over the image: a known fault.

Padding is computed without regard to its sign, and a negative one becomes a huge unsigned number: every tap lies in it,
and each output is the bias. Filters of one pixel go another way.
Source: LiteRT 2.1 xnnpack_delegate.cc CalculatePadding; XNNPACK of 2025 convolution-nhwc.c, SAME padding; observed in
tflite-runtime 2.12 and every LiteRT from 1.0 to 2.1. LiteRT 2.2 pads by 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.engine.kernels.exactness import EXACT
from tflq.engine.kernels.geometry.windows import Padding
from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class OpData:
    """Constants."""

    inner: Prepared  # of the kernel that would read the image
    blank: int  # code of 0, LSB of input; 0 for floats


def unread(row: Kernel, takes: Callable[[Node], bool] | None = None) -> Kernel:
    """Return the row, which reads nothing of the image if a total padding is negative; `takes` in place of its own."""

    def prepare(node: Node, arithmetic: Arithmetic) -> Prepared:
        inner = row.prepare(node, arithmetic)
        if not is_negative(node):
            return inner
        return Prepared(inner.shapes, OpData(inner, int(node.input(0).zero_point)), evaluate, exactness=EXACT)

    return replace(row, prepare=prepare, takes=takes or row.takes)


def is_negative(node: Node) -> bool:
    """Return whether SAME padding is negative along an axis, under a filter of more than one pixel."""
    options, image, kernel = node.options, node.input(0).shape, node.input(1).shape
    if int(options["padding"]) != Padding.SAME or kernel[1:3] == (1, 1):
        return False
    totals = []
    for axis, letter in ((1, "h"), (2, "w")):
        stride, dilation = int(options[f"stride_{letter}"]), int(options.get(f"dilation_{letter}_factor", 1))
        reach = (kernel[axis] - 1) * dilation + 1
        totals.append((-(-image[axis] // stride) - 1) * stride + reach - image[axis])
    return min(totals) < 0


def evaluate(data: OpData, x: Array, *rest: Array | None) -> Array | tuple[Array, ...]:
    """Compute with an image of zeros. Rounding: the bias, as the kernel rounds a sum."""
    return data.inner.eval(data.inner.data, np.full_like(x, data.blank), *rest)
