"""Sums over taps: every lane has a channel of its own, and one call computes a whole line.

A line is a run of consecutive elements of the output, pixel by pixel and channel by channel. A tap reads a run of
consecutive codes for it, which begins elsewhere. Two taps go in one instruction that multiplies pairs of int16 and adds
the products: their codes are interleaved, as weights were when they were packed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int
from tflq.engine.microkernels.emitted import Arguments, Emitted, intrinsic_of
from tflq.engine.microkernels.kernel import TapKernel
from tflq.engine.microkernels.tiles import unpacked
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.typing import Array


def line_of(kernel: TapKernel) -> Emitted:
    """Return the function of a line."""
    return Emitted(kernel, definition(kernel), _written)


def definition(kernel: TapKernel) -> Callable[..., None]:
    """Return the definition of a line on scalars."""
    width, lanes = kernel.width, kernel.form.lanes

    def line_into(
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
        """Compute out[out_at + i] = clamp(scale(bias + sum over taps of codes[at + offset + i] * weight) + zero point).

        There are `passes` passes of `width` elements each. `codes`, `offsets` and `out` are flat; `weights` is (period,
        pairs, 2, width) and `constants` (period, words), laid out by `lines`; all are contiguous. The caller ensures
        that everything lies inside its array, whole passes included, and `first` within the period.
        """
        for step in range(passes):
            phase = (first + step) % len(weights)
            biases, *words = unpacked(kernel.constants, width, constants[phase])
            start = at + step * width
            tapped = np.array([codes[start + o : start + o + width] for o in offsets], np.int64)
            for lane, element in enumerate(kernel.order):
                half, place = divmod(lane, lanes)
                own = weights[phase, :, half, 2 * place : 2 * place + 2].reshape(-1).astype(np.int64)
                value, word = wrap_int32(int(biases[lane]) + int(own @ tapped[:, element])), 0
                for each in kernel.steps:
                    value = each.define(value, *(w[lane] for w in words[word : word + len(each.types)]))
                    word += len(each.types)
                out[out_at + step * width + element] = clamp(wrap_int32(value + zero_point), low, high)

    return line_into


def _written(kernel: TapKernel, definition: Callable[..., None]) -> Any:
    from tflq.engine.microkernels.tap_emission import LineOperands, emit_line

    def write(at: Arguments) -> None:
        operands = LineOperands(
            codes=at.address("codes", at.number("at")),
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
        at.builder.call(emit_line(at.builder.module, kernel), list(operands))

    return intrinsic_of(definition, write)
