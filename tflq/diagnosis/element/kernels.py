"""Elements in words: pools, reductions, one and two quantized operands, QUANTIZE from float32, moved elements.

The source of a moved element is found by moving numbered elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflq.diagnosis.element.contractions import ElementSite, Read, Tap, Working, align, total_of, zero_point_of
from tflq.engine.kernels import dequantize, quantize
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.pooling import average_half_away
from tflq.engine.kernels.families.reduction import ReducedAxes
from tflq.engine.kernels.families.scaled_sum import common_scale
from tflq.engine.kernels.families.unary import Tabulated
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.quantize import BLOCK
from tflq.engine.numerics.rounding import float_to_int32, round_half_away, round_half_even
from tflq.engine.numerics.stages import OutputPipeline, WorkedStep, clamp_step, double_rounding_steps, type_range, wrap
from tflq.typing import Array


def scaled_sum(site: ElementSite) -> Working:
    """Trace ADD and SUB: each input looked up on the common scale, the sum scaled to the output's."""
    return _sum_of(site, site.data.first, site.data.second, site.data.pipeline)


def scaled_sum_in_blocks(site: ElementSite) -> Working:
    """Trace a sum whose tables differ between the elements that vector code computes and the rest."""
    data = site.data
    tables = (data.first, data.second) if site.flat % data.run < data.whole else (data.rest.first, data.rest.second)
    return _sum_of(site, *tables, data.rest.pipeline)


def _sum_of(site: ElementSite, first: Array, second: Array, pipeline: OutputPipeline) -> Working:
    steps, parts = [], []
    for operand, table in enumerate((first, second)):
        read = _broadcast_read(site, operand)
        part = int(table[np.array(read.code).astype(f"u{site.operand(operand).itemsize}")])
        parts.append(Tap(read, None, part))
        steps += _to_common_scale(site, operand, read, part)
    total = sum(int(tap.product) for tap in parts)
    steps.append(WorkedStep("sum on the common scale", total, f"{parts[0].product} + {parts[1].product}"))
    return Working(tuple(parts), (*steps, *pipeline.worked(total)))


def _to_common_scale(site: ElementSite, operand: int, read: Read, part: int) -> list[WorkedStep]:
    """Return the steps of an input to the common scale if it uses the reference's method; else its table entry."""
    a, b, _ = both(site.node)
    x = (a, b)[operand]
    left = 15 if site.operand(operand).dtype == np.int16 else 20
    real = np.float64(x.scale) / common_scale(a, b)
    centred = int(read.centred) << left
    inner = site.arithmetic.requantize(real).worked(centred, 0)
    if abs(int(inner[-1].value)) != abs(part):
        return [WorkedStep(f"input {operand} on the common scale, by its table", part, f"table[{read.code}]")]
    named = [replace(step, name=f"input {operand}: {step.name}") for step in inner]
    steps = [
        WorkedStep(f"input {operand}: centred, shifted left", centred, f"({read.code} - {read.zero_point}) << {left}")
    ]
    if inner[-1].value != part:
        named.append(WorkedStep(f"input {operand}: negated", part))
    return [*steps, *named]


def product(site: ElementSite) -> Working:
    """Trace MUL: the product of centred codes, scaled."""
    data = site.data
    first, second = (
        replace(_broadcast_read(site, operand), zero_point=zero)
        for operand, zero in enumerate((data.first_zero_point, data.second_zero_point))
    )
    value = int(first.centred) * int(second.centred)
    steps = (WorkedStep("product of centred codes", value, f"{first.centred} * {second.centred}"),)
    return Working((Tap(first, second, value),), (*steps, *data.pipeline.worked(wrap(value))))


def plain(site: ElementSite) -> Working:
    """Trace an operator in its operands' own type: their values and the result."""
    values = [_broadcast_read(site, operand) for operand in (0, 1)]
    a, b = (site.operand(read.operand)[read.place] for read in values)
    result = np.asarray(site.data(a, b)).astype(site.operand(0).dtype)
    taps = tuple(Tap(replace(read, zero_point=0), None, read.code) for read in values)
    return Working(taps, (WorkedStep(site.node.op, result.item(), f"of {a} and {b}"),))


def _broadcast_read(site: ElementSite, operand: int) -> Read:
    shape = site.operand(operand).shape
    return site.read(operand, align(site.index, shape), zero_point_of(site, operand))


#: Positions of the moved operands; None for all.
MOVES: Mapping[str, tuple[int, ...] | None] = {
    op: fact.moves for op, fact in OPERATORS.items() if fact.moves is None or fact.moves
}

#: A function from inputs to the first output's element.
Element = Callable[[Sequence[Array | None]], object]


def move(site: ElementSite, element: Element) -> Working | None:
    """Return the element that the output element copies; none for a fill value.

    The result is None if the operator does more than move elements.
    """
    positions = MOVES.get(site.node.op, ())
    chosen = [p for p in (range(len(site.inputs)) if positions is None else positions) if site.optional(p) is not None]
    if not chosen or site.operand(chosen[0]).dtype.kind not in "biuf":
        return None
    number = _number(site, element, chosen)
    value = np.asarray(element(site.inputs)).item()
    if number < 0:
        return Working((), (WorkedStep("fill value", value),))
    for position in chosen:
        size = site.operand(position).size
        if number < size:
            read = site.read_flat(position, number)
            return (
                Working((Tap(read, None, read.code),), (WorkedStep("copied", read.code),))
                if read.code == value
                else None
            )
        number -= size
    return None


def _number(site: ElementSite, element: Element, positions: Sequence[int]) -> int:
    """Return the number of the element that arrives, counted through these operands in order; -1 for a fill value."""
    kind = site.operand(positions[0]).dtype
    unsigned = np.dtype(f"u{kind.itemsize}")
    base = 2 if kind == np.bool_ else 2 ** min(8 * kind.itemsize, 22)  # a float with bits below 2**22 is never NaN
    total = sum(site.operand(position).size for position in positions)

    def arriving(multiple: int, divisor: int) -> int:
        """Return the result if every element holds one digit of a multiple of its number; numbers begin at 1."""
        inputs, first = list(site.inputs), 1
        for position in positions:
            values = site.operand(position)
            numbers = np.arange(first, first + values.size).reshape(values.shape)
            first += values.size
            inputs[position] = (multiple * numbers // divisor % base).astype(unsigned).view(values.dtype)
        return int(np.asarray(element(inputs)).view(unsigned).item())

    if arriving(0, 1):  # no element holds this value
        return -1
    digits = [base**place for place in range(total.bit_length()) if base**place <= total]
    number: int = sum(divisor * arriving(1, divisor) for divisor in digits)
    return number - 1


def concatenate(site: ElementSite) -> Working:
    """Trace CONCATENATION: the input that holds the element; its code, copied or rescaled by a table."""
    axis, at = site.data.axis, site.index[site.data.axis]
    for position, table in enumerate(site.data.tables):
        shape = site.operand(position).shape or (1,)
        if at < shape[axis]:
            place = (*site.index[:axis], at, *site.index[axis + 1 :])
            read = site.read(position, place if site.operand(position).ndim else ())
            code = read.code if table is None else table[int(read.code)].item()
            step = (
                WorkedStep("copied", code)
                if table is None
                else WorkedStep("rescaled by a table", code, f"table[{read.code}]")
            )
            return Working((Tap(read, None, read.code),), (step,))
        at -= shape[axis]
    raise IndexError(f"{site.index} lies in none of the inputs")


def average(site: ElementSite) -> Working:
    """Trace AVERAGE_POOL_2D: the taps inside the image, their number, half away from zero."""
    taps, outside = _window_taps(site)
    total = total_of(taps, "sum")
    mean = int(average_half_away(int(total.value), len(taps)))
    how = f"{total.value} / {len(taps)} = {int(total.value) / len(taps)!r}"
    steps = (total, WorkedStep("divided by the taps inside, half away from zero", mean, how))
    return Working(taps, (*steps, clamp_step(mean, *map(int, site.data.clamp))), outside)


def largest(site: ElementSite) -> Working:
    """Trace MAX_POOL_2D: the largest of the taps inside the image."""
    taps, outside = _window_taps(site)
    lowest = type_range(site.operand(0).dtype)[0]
    best = max((int(tap.product) for tap in taps), default=lowest)
    clamped = clamp_step(best, *map(int, site.data.clamp))
    return Working(taps, (WorkedStep("largest", best), clamped), outside)


def _window_taps(site: ElementSite) -> tuple[tuple[Tap, ...], int]:
    at, (n, oy, ox, channel) = site.data.window, site.index
    top, left = oy * at.stride_h - at.pad_top, ox * at.stride_w - at.pad_left
    taps = tuple(
        _term(site.read(0, (n, y, x, channel)))
        for y in range(max(top, 0), min(top + at.kernel_h, at.height))
        for x in range(max(left, 0), min(left + at.kernel_w, at.width))
    )
    return taps, at.taps - len(taps)


def mean(site: ElementSite) -> Working:
    """Trace MEAN of the reference: zero points subtracted from the sum, then one multiplier that also divides."""
    data = site.data
    taps = _summands(site, data.reduced)
    total = total_of(taps, "sum")
    centred = wrap(wrap(int(total.value)) - data.zeros)
    steps = [total, WorkedStep("zero points subtracted", centred, f"{total.value} - {data.zeros}")]
    steps += double_rounding_steps(centred, *data.multiplier)
    moved = int(steps[-1].value) + data.zero_point
    steps.append(WorkedStep("output zero point added", moved, f"{steps[-1].value} + {data.zero_point}"))
    return Working(taps, (*steps, clamp_step(moved, *data.clamp)))


def mean_by_pipeline(site: ElementSite) -> Working:
    """Trace MEAN over height and width by vector code: the raw sum scaled, both zero points in one bias."""
    taps = _summands(site, site.data.reduced)
    total = total_of(taps, "sum")
    steps = site.data.pipeline.worked(wrap(int(total.value)), channel=site.index[-1])
    return Working(taps, (total, *steps))


def scale_in_float32(site: ElementSite) -> Working:
    """Trace MEAN and SUM of XNNPACK: one float32 product, one float32 addition, clamped, half to even."""
    data = site.data
    taps = _summands(site, data.reduced)
    steps = [*_in_float32(taps, data.scale, data.offset)]
    clamped = float(np.clip(np.float32(steps[-1].value), *type_range(data.dtype)))
    how = "to {} .. {}".format(*type_range(data.dtype))
    return Working(
        taps, (*steps, WorkedStep("clamp", clamped, how), WorkedStep("rounded half to even", int(np.rint(clamped))))
    )


def _in_float32(
    taps: Sequence[Tap], scale: np.float32, offset: np.float32
) -> tuple[WorkedStep, WorkedStep, WorkedStep]:
    total = total_of(taps, "sum")
    scaled = np.float32(wrap(int(total.value))) * scale
    return (
        total,
        WorkedStep("multiplied in float32", float(scaled), f"{total.value} * {float(scale)!r}"),
        WorkedStep("offset added in float32", float(scaled + offset), f"{float(scaled)!r} + {float(offset)!r}"),
    )


def _summands(site: ElementSite, reduced: ReducedAxes, read_as: np.dtype[np.generic] | None = None) -> tuple[Tap, ...]:
    """Return the elements that contribute to an output, in the order in which they are added."""
    x = site.operand(0)
    outer, inner = divmod(site.flat, reduced.view[2])
    offsets = reduced.rows(np.arange(x.size).reshape(x.shape))[outer, :, inner]
    reads = (site.read_flat(0, int(offset)) for offset in offsets)
    if read_as is None:
        return tuple(map(_term, reads))
    return tuple(Tap(r, None, int(np.array(r.code, x.dtype).view(read_as))) for r in reads)


def _term(read: Read) -> Tap:
    return Tap(read, None, read.code)


def by_quotient(site: ElementSite) -> Working:
    """Trace the reference: a float32 quotient, half away from zero; one scale per channel."""
    data = site.data
    channel = site.flat // data.rows[2] % data.rows[1]
    scale = data.scale[channel]
    with np.errstate(all="ignore"):
        quotient = float(np.float32(_given(site)) / scale)
    step = WorkedStep("divided by the scale, in float32", quotient, f"{_given(site)!r} / {float(scale)!r}")
    return _round_away(site, step, int(data.zero_point.codes[channel]))


def by_wide_quotient(site: ElementSite) -> Working:
    """Trace the optimized kernels' scalar loop: a float64 quotient, half away from zero."""
    scale = float(site.data.scale[0])
    step = WorkedStep("divided by the scale, in float64", _given(site) / scale, f"{_given(site)!r} / {scale!r}")
    return _round_away(site, step, int(site.data.zero_point.codes[0]))


def by_blocks(site: ElementSite) -> Working:
    """Trace vector code: a float32 product with the reciprocal, half to even; the scalar loop does the rest."""
    data = site.data
    if site.flat >= in_whole_blocks(int(np.prod(site.shape)), BLOCK):
        return by_wide_quotient(site)
    inverse, zero_point = np.float32(1.0 / float(data.scale[0])), int(data.zero_point.codes[0])
    product = float(np.float32(np.float32(_given(site)) * inverse))
    whole = int(float_to_int32(round_half_even(product)))
    steps = (
        WorkedStep("multiplied by 1 / scale, in float32", product, f"{_given(site)!r} * {float(inverse)!r}"),
        WorkedStep("rounded half to even", whole),
        WorkedStep("output zero point added", wrap(whole + zero_point), f"{whole} + {zero_point}"),
    )
    return _working(site, (*steps, clamp_step(wrap(whole + zero_point), *data.clamp)))


def by_product(site: ElementSite) -> Working:
    """Trace XNNPACK: a float32 product with the reciprocal, clamped, half to even."""
    data = site.data
    product = float(np.float32(np.float32(_given(site)) * data.per_unit))
    low, high = data.clamp
    lowest, highest = (float(np.float32(limit - data.zero_point)) for limit in (low, high))
    clamped = min(max(product, lowest), highest)
    whole = int(round_half_even(clamped))
    steps = (
        WorkedStep("multiplied by 1 / scale, in float32", product, f"{_given(site)!r} * {float(data.per_unit)!r}"),
        WorkedStep("clamp", clamped, f"to {low} .. {high}, less the zero point"),
        WorkedStep("rounded half to even", whole),
        WorkedStep("output zero point added", whole + data.zero_point, f"{whole} + {data.zero_point}"),
    )
    return _working(site, steps)


def _round_away(site: ElementSite, quotient: WorkedStep, zero_point: int) -> Working:
    whole = int(float_to_int32(round_half_away(float(quotient.value))))
    moved = wrap(whole + zero_point)
    steps = (
        quotient,
        WorkedStep("rounded half away from zero", whole),
        WorkedStep("output zero point added", moved, f"{whole} + {zero_point}"),
    )
    return _working(site, (*steps, clamp_step(moved, *site.data.clamp)))


def _given(site: ElementSite) -> float:
    return float(site.read(0, site.index).code)


def _working(site: ElementSite, steps: tuple[WorkedStep, ...]) -> Working:
    read = site.read(0, site.index)
    return Working((Tap(read, None, read.code),), steps)


def tabulate(site: ElementSite) -> Working:
    """Trace an operator on 8-bit codes by its table, and the computation of the table's entry if it is known."""
    return _from_table(site, site.data)


def tabulate_in_blocks(site: ElementSite) -> Working:
    """Trace a table look-up whose table differs between the elements that vector code computes and the rest."""
    data, size = site.data, int(np.prod(site.shape))
    return _from_table(site, data.whole if site.flat < in_whole_blocks(size, data.block) else data.tail)


def _from_table(site: ElementSite, data: Tabulated) -> Working:
    read = _read_here(site)
    entry = _look_up(data.table, read)
    for kind, work in _INSIDE.items():
        if isinstance(data.data, kind):
            inner = work(data.data, read)
            if inner[-1].value == entry.value:
                return Working((_alone(read),), tuple(inner))
    return Working((_alone(read),), (entry,))


def looked_up(site: ElementSite) -> Working:
    """Return the step of a table of 256 codes."""
    read = _read_here(site)
    return Working((_alone(read),), (_look_up(site.data, read),))


def _look_up(table: Array, read: Read) -> WorkedStep:
    return WorkedStep("table", table[np.array(read.code).astype(np.uint8)].item(), f"table[{read.code}]")


def dequantized(site: ElementSite) -> Working:
    """Trace DEQUANTIZE without a table: 16 bits, or several scales."""
    read = _read_here(site)
    return Working((_alone(read),), tuple(_dequantize(site.data, read, site.flat)))


def requantized(site: ElementSite) -> Working:
    """Trace QUANTIZE from codes to codes."""
    read = _read_here(site)
    return Working((_alone(read),), tuple(_requantize(site.data, read)))


def _dequantize(data: dequantize.OpData, read: Read, flat: int = 0) -> list[WorkedStep]:
    inner = data.rows[2]
    channel = flat // inner % data.rows[1] if inner > 0 else 0
    zero_point, scale = int(data.zero_point.codes[channel]), data.scale[channel]
    centred = int(read.code) - zero_point
    real = np.float32(np.float64(centred) * scale)
    return [
        WorkedStep("zero point subtracted", centred, f"{read.code} - {zero_point}"),
        WorkedStep("multiplied by the scale, rounded to float32", real.item(), f"{centred} * {float(scale)!r}"),
    ]


def _requantize(data: quantize.RequantizeData, read: Read) -> list[WorkedStep]:
    centred = int(read.code) - data.zero_point
    first = WorkedStep("input zero point subtracted", centred, f"{read.code} - {data.zero_point}")
    return [first, *data.pipeline.worked(wrap(centred))]


#: Trace functions of table entries, by the type of the table's constants.
_INSIDE: dict[type, Callable[[Any, Read], list[WorkedStep]]] = {
    quantize.RequantizeData: _requantize,
    dequantize.OpData: _dequantize,
}


def _read_here(site: ElementSite) -> Read:
    return site.read(0, site.index, zero_point_of(site, 0))


def _alone(read: Read) -> Tap:
    return Tap(read, None, read.centred)
