"""Sums over taps: every lane has a channel of its own, and one call computes a whole line.

A line is a run of consecutive elements of the output, pixel by pixel and channel by channel. A tap reads a run of
consecutive codes for it, which begins elsewhere. Two taps go in one instruction that multiplies pairs of int16 and adds
the products: their codes are interleaved, as weights were when they were packed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tflq.jit.compiled import Array, Compiled, Int
from tflq.microkernels.kernel import TapKernel
from tflq.microkernels.tiles import sources, unpacked
from tflq.numerics.rounding import clamp, wrap_int32


class EmittedLine(Compiled[..., None]):
    """The line of one kernel: `python` defines it, compiled code calls what `emit_line` writes."""

    writes_code = True

    def __init__(self, kernel: TapKernel) -> None:
        super().__init__(definition(kernel))
        self.kernel = kernel

    def digest(self) -> str:
        """Return a digest of the kernel and of the code that writes it."""
        return hashlib.sha256(f"{self.kernel} {sources()}".encode()).hexdigest()[:16]

    def _linked(self) -> Any:
        emitted: Callable[..., None] = _intrinsic(self.kernel)
        return emitted


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


def _intrinsic(kernel: TapKernel) -> Any:
    """Return the line as a numba intrinsic with the arguments of its definition."""
    from numba.core import types
    from numba.extending import intrinsic

    from tflq.microkernels.tap_emission import LineOperands, emit_line
    from tflq.microkernels.vectors import I8, I32

    @intrinsic  # type: ignore[untyped-decorator]
    def line_into(
        typing: Any,
        codes: Any,
        at: Any,
        offsets: Any,
        weights: Any,
        constants: Any,
        first: Any,
        passes: Any,
        zero_point: Any,
        low: Any,
        high: Any,
        out: Any,
        out_at: Any,
    ) -> Any:
        argument_types = (codes, at, offsets, weights, constants, first, passes, zero_point, low, high, out, out_at)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def array(position: int) -> Any:
                return context.make_array(argument_types[position])(context, builder, arguments[position])

            def number(position: int) -> Any:
                return context.cast(builder, arguments[position], argument_types[position], types.int64)

            def address(position: int, element: Any = None) -> Any:
                whole = array(position)
                place = builder.bitcast(whole.data, I8.as_pointer())
                if element is None:
                    return place
                return builder.gep(place, [builder.mul(element, builder.extract_value(whole.strides, 0))])

            operands = LineOperands(
                codes=address(0, number(1)),
                offsets=address(2),
                pairs=builder.extract_value(array(3).shape, 1),
                weights=address(3),
                constants=address(4),
                period=builder.extract_value(array(3).shape, 0),
                first=number(5),
                passes=number(6),
                zero_point=builder.trunc(number(7), I32),
                low=builder.trunc(number(8), I32),
                high=builder.trunc(number(9), I32),
                out=address(10, number(11)),
            )
            builder.call(emit_line(builder.module, kernel), list(operands))
            return context.get_dummy_value()

        return types.void(*argument_types), generate

    return line_into
