"""Sums over taps: every lane has a channel of its own, and one call computes a whole line.

A line is a run of consecutive elements of the output, pixel by pixel and channel by channel. A tap reads a run of
consecutive codes for it, which begins elsewhere. Two taps go in one instruction that multiplies pairs of int16 and adds
the products: their codes are interleaved, as weights were when they were packed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.microkernels import called
from tflq.engine.microkernels.emitted import Arguments
from tflq.engine.microkernels.kernel import TapKernel
from tflq.engine.microkernels.tiles import unpack
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.typing import Array


@cache
def address_of(kernel: TapKernel) -> int:
    """Return the address of a line, which `line_into` takes."""
    return line_into.address(kernel, definition(kernel))


def definition(kernel: TapKernel) -> Callable[..., None]:
    """Return the definition of a line on scalars, with the parameters of `line_into` from `codes` on."""
    width, lanes = kernel.width, kernel.form.lanes

    def define(
        codes: Array,
        at: Int,
        offsets: Array,
        weights: Array,
        constants: Array,
        first: Int,
        passes: Int,
        zero_point: Int,
        low: Int,
        high: Int,
        out: Array,
        out_at: Int,
    ) -> None:
        read, written = codes.view(kernel.left), out.view(kernel.code)
        for step in range(passes):
            phase = (first + step) % len(weights)
            biases, *words = unpack(kernel.constants, width, constants[phase])
            start = at + step * width
            tapped = np.array([read[start + o : start + o + width] for o in offsets], np.int64)
            for lane, element in enumerate(kernel.order):
                half, place = divmod(lane, lanes)
                own = weights[phase, :, half, 2 * place : 2 * place + 2].reshape(-1).astype(np.int64)
                value, word = wrap_int32(int(biases[lane]) + int(own @ tapped[:, element])), 0
                for each in kernel.steps:
                    value = each.define(value, *(w[lane] for w in words[word : word + len(each.types)]))
                    word += len(each.types)
                written[out_at + step * width + element] = clamp(wrap_int32(value + zero_point), low, high)

    return define


def _write(module: Any, kernel: TapKernel, name: str) -> Any:
    from tflq.engine.microkernels.tap_emission import emit_line

    return emit_line(module, kernel, name)


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.tap_emission import LineOperands

    return LineOperands(
        codes=at.address("codes", at.number("code_at")),
        offsets=at.address("offsets"),
        pairs=at.size("weights", 1),
        weights=at.address("weights"),
        constants=at.address("constants"),
        period=at.size("weights", 0),
        first=at.number("first"),
        passes=at.number("passes"),
        zero_point=at.code("zero_point"),
        low=at.code("low"),
        high=at.code("high"),
        out=at.address("out", at.number("out_at")),
    )


@called.by_address(_write, _operands)
@compiled
def line_into(
    at: Int,
    codes: Array,
    code_at: Int,
    offsets: Array,
    weights: Array,
    constants: Array,
    first: Int,
    passes: Int,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
    out_at: Int,
) -> None:
    """Compute out[out_at + i] = clamp(scale(bias + sum over taps of codes[code_at + offset + i] * weight) + zero point)
    by the kernel at an address.

    There are `passes` passes of the kernel's width. `codes`, `offsets` and `out` are flat; codes may be given as any
    type of their size. `weights` is (period, pairs, 2, width) and `constants` (period, words), laid out by `lines`; all
    are contiguous.

    The caller guarantees: `at` is that of a kernel for these operands; everything lies inside its array, whole passes
    included, and `first` within the period.
    """
    called.definition_at(at)(
        codes, code_at, offsets, weights, constants, first, passes, zero_point, low, high, out, out_at
    )
