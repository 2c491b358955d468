"""Two quantized operands, element by element: ADD, SUB and MUL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.diagnosis.element.steps import Read, Site, Tap, Working, align, zero_point_of
from tflq.engine.kernels.families.binary import both
from tflq.engine.kernels.families.scaled_sum import common_scale
from tflq.engine.numerics.stages import OutputPipeline
from tflq.engine.numerics.steps import Step, pipeline_steps, stage_steps, wrap
from tflq.typing import Array


def scaled_sum(site: Site) -> Working:
    """Trace ADD and SUB: each input looked up on the common scale, the sum scaled to the output's."""
    return _sum_of(site, site.data.first, site.data.second, site.data.pipeline)


def scaled_sum_in_blocks(site: Site) -> Working:
    """Trace a sum whose tables differ between the elements that vector code computes and the rest."""
    data = site.data
    tables = (data.first, data.second) if site.flat % data.run < data.whole else (data.rest.first, data.rest.second)
    return _sum_of(site, *tables, data.rest.pipeline)


def _sum_of(site: Site, first: Array, second: Array, pipeline: OutputPipeline) -> Working:
    steps, parts = [], []
    for operand, table in enumerate((first, second)):
        read = _broadcast_read(site, operand)
        part = int(table[np.array(read.code).astype(f"u{site.operand(operand).itemsize}")])
        parts.append(Tap(read, None, part))
        steps += _to_common_scale(site, operand, read, part)
    total = sum(int(tap.product) for tap in parts)
    steps.append(Step("sum on the common scale", total, f"{parts[0].product} + {parts[1].product}"))
    return Working(tuple(parts), (*steps, *pipeline_steps(pipeline, total)))


def _to_common_scale(site: Site, operand: int, read: Read, part: int) -> list[Step]:
    """Return the steps of an input to the common scale if it uses the reference's method; else its table entry."""
    a, b, _ = both(site.node)
    x = (a, b)[operand]
    left = 15 if site.operand(operand).dtype == np.int16 else 20
    real = np.float64(x.scale) / common_scale(a, b)
    centred = int(read.centred) << left
    inner = stage_steps(site.arithmetic.requantize(real), centred, 0)
    if abs(int(inner[-1].value)) != abs(part):
        return [Step(f"input {operand} on the common scale, by its table", part, f"table[{read.code}]")]
    named = [replace(step, name=f"input {operand}: {step.name}") for step in inner]
    steps = [Step(f"input {operand}: centred, shifted left", centred, f"({read.code} - {read.zero_point}) << {left}")]
    if inner[-1].value != part:
        named.append(Step(f"input {operand}: negated", part))
    return [*steps, *named]


def product(site: Site) -> Working:
    """Trace MUL: the product of centred codes, scaled."""
    data = site.data
    first, second = (
        replace(_broadcast_read(site, operand), zero_point=zero)
        for operand, zero in enumerate((data.first_zero_point, data.second_zero_point))
    )
    value = int(first.centred) * int(second.centred)
    steps = (Step("product of centred codes", value, f"{first.centred} * {second.centred}"),)
    return Working((Tap(first, second, value),), (*steps, *pipeline_steps(data.pipeline, wrap(value))))


def plain(site: Site) -> Working:
    """Trace an operator in its operands' own type: their values and the result."""
    values = [_broadcast_read(site, operand) for operand in (0, 1)]
    a, b = (site.operand(read.operand)[read.place] for read in values)
    result = np.asarray(site.data(a, b)).astype(site.operand(0).dtype)
    taps = tuple(Tap(replace(read, zero_point=0), None, read.code) for read in values)
    return Working(taps, (Step(site.node.op, result.item(), f"of {a} and {b}"),))


def _broadcast_read(site: Site, operand: int) -> Read:
    shape = site.operand(operand).shape
    return site.read(operand, align(site.index, shape), zero_point_of(site, operand))
