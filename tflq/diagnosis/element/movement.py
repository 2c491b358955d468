"""Operators that only move elements: the source of an element, found by moving numbered elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflq.diagnosis.element.steps import Site, Tap, Working
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.numerics.steps import Step
from tflq.typing import Array

#: Positions of the moved operands; None for all.
MOVES: Mapping[str, tuple[int, ...] | None] = {
    op: fact.moves for op, fact in OPERATORS.items() if fact.moves is None or fact.moves
}

#: A function from inputs to the first output's element.
Element = Callable[[Sequence[Array | None]], object]


def move(site: Site, element: Element) -> Working | None:
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
        return Working((), (Step("fill value", value),))
    for position in chosen:
        size = site.operand(position).size
        if number < size:
            read = site.read_flat(position, number)
            return Working((Tap(read, None, read.code),), (Step("copied", read.code),)) if read.code == value else None
        number -= size
    return None


def _number(site: Site, element: Element, positions: Sequence[int]) -> int:
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


def concatenate(site: Site) -> Working:
    """Trace CONCATENATION: the input that holds the element; its code, copied or rescaled by a table."""
    axis, at = site.data.axis, site.index[site.data.axis]
    for position, table in enumerate(site.data.tables):
        shape = site.operand(position).shape or (1,)
        if at < shape[axis]:
            place = (*site.index[:axis], at, *site.index[axis + 1 :])
            read = site.read(position, place if site.operand(position).ndim else ())
            code = read.code if table is None else table[int(read.code)].item()
            step = Step("copied", code) if table is None else Step("rescaled by a table", code, f"table[{read.code}]")
            return Working((Tap(read, None, read.code),), (step,))
        at -= shape[axis]
    raise IndexError(f"{site.index} lies in none of the inputs")
