"""One operand, element by element: tables of codes and requantization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflq.diagnosis.element.steps import Read, Site, Tap, Working, zero_point_of
from tflq.engine.kernels.dequantize import reference as dequantize
from tflq.engine.kernels.families.unary import Tabulated
from tflq.engine.kernels.families.vector_blocks import in_whole_blocks
from tflq.engine.kernels.quantize import reference as quantize
from tflq.engine.numerics.steps import Step, pipeline_steps, wrap
from tflq.typing import Array


def tabulate(site: Site) -> Working:
    """Trace an operator on 8-bit codes by its table, and the computation of the table's entry if it is known."""
    return _from_table(site, site.data)


def tabulate_in_blocks(site: Site) -> Working:
    """Trace a table look-up whose table differs between the elements that vector code computes and the rest."""
    data, size = site.data, int(np.prod(site.shape))
    return _from_table(site, data.whole if site.flat < in_whole_blocks(size, data.block) else data.tail)


def _from_table(site: Site, data: Tabulated) -> Working:
    read = _read_here(site)
    entry = _look_up(data.table, read)
    for kind, work in _INSIDE.items():
        if isinstance(data.data, kind):
            inner = work(data.data, read)
            if inner[-1].value == entry.value:
                return Working((_alone(read),), tuple(inner))
    return Working((_alone(read),), (entry,))


def looked_up(site: Site) -> Working:
    """Return the step of a table of 256 codes."""
    read = _read_here(site)
    return Working((_alone(read),), (_look_up(site.data, read),))


def _look_up(table: Array, read: Read) -> Step:
    return Step("table", table[np.array(read.code).astype(np.uint8)].item(), f"table[{read.code}]")


def dequantized(site: Site) -> Working:
    """Trace DEQUANTIZE without a table: 16 bits, or several scales."""
    read = _read_here(site)
    return Working((_alone(read),), tuple(_dequantize(site.data, read, site.flat)))


def requantized(site: Site) -> Working:
    """Trace QUANTIZE from codes to codes."""
    read = _read_here(site)
    return Working((_alone(read),), tuple(_requantize(site.data, read)))


def _dequantize(data: dequantize.OpData, read: Read, flat: int = 0) -> list[Step]:
    inner = data.rows[2]
    channel = flat // inner % data.rows[1] if inner > 0 else 0
    zero_point, scale = int(data.zero_point.codes[channel]), data.scale[channel]
    centred = int(read.code) - zero_point
    real = np.float32(np.float64(centred) * scale)
    return [
        Step("zero point subtracted", centred, f"{read.code} - {zero_point}"),
        Step("multiplied by the scale, rounded to float32", real.item(), f"{centred} * {float(scale)!r}"),
    ]


def _requantize(data: quantize.RequantizeData, read: Read) -> list[Step]:
    centred = int(read.code) - data.zero_point
    first = Step("input zero point subtracted", centred, f"{read.code} - {data.zero_point}")
    return [first, *pipeline_steps(data.pipeline, wrap(centred))]


#: Trace functions of table entries, by the type of the table's constants.
_INSIDE: dict[type, Callable[[Any, Read], list[Step]]] = {
    quantize.RequantizeData: _requantize,
    dequantize.OpData: _dequantize,
}


def _read_here(site: Site) -> Read:
    return site.read(0, site.index, zero_point_of(site, 0))


def _alone(read: Read) -> Tap:
    return Tap(read, None, read.centred)
