"""Sums over taps of an image, channel by channel, and through an output pipeline: bound to the best kernel for it.

Sums over taps: every lane has a channel of its own, and one call computes a whole line.

A line is a run of consecutive elements of the output, pixel by pixel and channel by channel. A tap reads a run of
consecutive codes for it, which begins elsewhere. Two taps go in one instruction that multiplies pairs of int16 and adds
the products: their codes are interleaved, as weights were when they were packed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from tflq.engine.jit.compiled import Int, compiled
from tflq.engine.jit.native import Unavailable
from tflq.engine.microkernels import kernel as called
from tflq.engine.microkernels.kernel import Arguments, TapKernel, VectorForm, choose, through
from tflq.engine.microkernels.product import align, unpack
from tflq.engine.numerics.rounding import clamp, wrap_int32
from tflq.engine.numerics.stages import LIMIT, OutputPipeline
from tflq.typing import Array


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
                total = wrap_int32(int(biases[lane]) + int(own @ tapped[:, element]))
                value = through(kernel.steps, total, (w[lane] for w in words))
                written[out_at + step * width + element] = clamp(wrap_int32(value + zero_point), low, high)

    return define


def _operands(at: Arguments) -> tuple[Any, ...]:
    from tflq.engine.microkernels.emission import LineOperands

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


@called.by_address(_operands, definition)
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


#: Bytes of weights and constants that stay in a core's second-level cache.
_MOST_BYTES = 1 << 18
#: Elements beyond the last one that a pass may read or write.
SLACK = 64


@dataclass(frozen=True, slots=True, eq=False)
class TapSums:
    """Sums over taps, packed for a kernel."""

    kernel: TapKernel
    line: tuple[int, int]  # the address of the kernel's function, and its width
    offsets: Array  # of the taps in a slab, an even number of them
    weights: Array
    constants: Array
    limits: tuple[int, int, int]  # zero point, low and high, LSB of output


def tap_sums(
    codes: np.dtype[Any],
    zero_point: int,
    weights: Array,
    offsets: Array,
    bias: Array,
    pipeline: OutputPipeline,
    form: VectorForm | None = None,
) -> TapSums | None:
    """Prepare sums over taps of codes less `zero_point` times `weights` (T, C), centred, with all of `pipeline` behind
    them.

    A slab holds codes as they are, padding as the zero point. `offsets` (T,) are those of the taps, in elements; `bias`
    has C elements. Return None if the result would not be exact, or if this processor has no form for it; `form` is the
    processor's best unless it is given.
    """
    form = form or choose(True)
    if form is None or form.group != 2 or not -(2**15) <= int(weights.min()) <= int(weights.max()) < 2**15:
        return None
    info, wide = np.iinfo(codes), weights.astype(np.int64)
    largest = max(abs(int(info.min) - zero_point), abs(int(info.max) - zero_point))
    total = int(np.abs(wide).sum(axis=0).max()) * largest + int(np.abs(bias.astype(np.int64)).max())
    scaling = pipeline.stage.scaling(total) if total < LIMIT else None
    if scaling is None or pipeline.dtype.name not in ("int8", "uint8", "int16"):
        return None
    kernel = TapKernel(form, codes.name, scaling.steps, pipeline.dtype.name)
    period = weights.shape[1] // gcd(weights.shape[1], kernel.width)
    if period * kernel.width * (2 * len(weights) + 4 * len(kernel.constants)) > _MOST_BYTES:
        return None
    try:
        line = line_into.address(kernel), kernel.width
    except Unavailable:
        return None
    biases = bias.astype(np.int64) - zero_point * wide.sum(axis=0)
    return TapSums(
        kernel=kernel,
        line=line,
        offsets=np.pad(offsets.astype(np.int64), (0, len(offsets) % 2)),
        weights=pack_weights(kernel, weights, period),
        constants=pack_constants(kernel, (biases.astype(np.int32), *scaling.constants), weights.shape[1], period),
        limits=(int(pipeline.zero_point), *pipeline.clamp),
    )


def pack_weights(kernel: TapKernel, weights: Array, period: int) -> Array:
    """Return (T, C) as int16 (period, pairs, 2, width): two taps side by side in each lane, filled up with weights of
    0.
    """
    taps = np.zeros((len(weights) + len(weights) % 2, weights.shape[1]), np.int16)
    taps[: len(weights)] = weights
    lanes = taps[:, _channels(kernel, period, weights.shape[1])]  # T, period, width
    pairs = lanes.reshape(-1, 2, period, 2, kernel.form.lanes)  # pair, tap, period, register, lane
    return align(pairs.transpose(2, 0, 3, 4, 1)).reshape(period, -1, 2, kernel.width)


def pack_constants(kernel: TapKernel, values: tuple[Array, ...], channels: int, period: int) -> Array:
    """Return int32 words (period, words): biases of a pass's lanes, then its steps' constants, of length 1 or C."""
    at = _channels(kernel, period, channels)
    parts = [np.ascontiguousarray(np.broadcast_to(v, channels)[at]).view(np.int32) for v in values]
    return align(np.concatenate(parts, axis=1))


def _channels(kernel: TapKernel, period: int, channels: int) -> Array:
    """Return the channel of each lane, (period, width)."""
    elements: Array = np.arange(period)[:, None] * kernel.width + np.array(kernel.order)
    return np.asarray(elements % channels)


@compiled
def lines_into(
    kernel: tuple[Int, Int],
    slab: Array,
    row_step: Int,
    offsets: Array,
    weights: Array,
    constants: Array,
    zero_point: Int,
    low: Int,
    high: Int,
    out: Array,
    first: Int,
    rows: Int,
    length: Int,
) -> None:
    """Compute `rows` lines from out[first + r * length] on: element i of line r is clamp(scale(bias + sum) + zero
    point).

    The sum is that over taps of slab[r * row_step + offset + i] * weight. `kernel` is (address, width). `slab` and
    `out` are flat, with codes of any type of their size. The part of a line beyond whole passes goes through `edge`.

    The caller guarantees: every tap of every element lies inside of `slab`, which has SLACK elements more; the lines
    lie inside of `out`; `weights` and `constants` are packed for the kernel.
    """
    line, width = kernel
    whole = length // width
    rest = length - whole * width
    edge = np.empty(width, out.dtype)
    period = weights.shape[0]
    for r in range(rows):
        at, target = r * row_step, first + r * length
        if whole > 0:
            line_into(line, slab, at, offsets, weights, constants, 0, whole, zero_point, low, high, out, target)
        if rest > 0:
            covered = whole * width
            first_pass, start = whole % period, at + covered
            line_into(line, slab, start, offsets, weights, constants, first_pass, 1, zero_point, low, high, edge, 0)
            for i in range(rest):
                out[target + covered + i] = edge[i]
