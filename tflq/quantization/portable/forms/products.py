"""Let the products of a MUL never lie half-way between two output codes.

With scales so that s_a * s_b / s_y is just below 2**-k, as `portable.grid` sets them, runtimes differ at most in ties:
a * b = 2**(k - 1) modulo 2**k, for codes a and b relative to their zero points. The power of two in a product is the
sum of the powers in its factors, so ties are out if the operands never have powers with the sum k - 1. An operand keeps
below 2**t, the other one out of 2**(k - t) to 2**(k - 1); 0 is always allowed. Codes with another power move by one, in
a table: that of the operator before the MUL, or a new one that changes nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.engine.numerics.multiplier import exponent_of
from tflq.model.ir import GraphView, OperatorView, view
from tflq.quantization.integer_model import IntegerModel
from tflq.quantization.portable.forms.chains import params_of
from tflq.quantization.portable.forms.editing import Editing, origin_near, rewritten_to
from tflq.quantization.portable.forms.lookups import LEAST, Codes, Lookup, write
from tflq.quantization.portable.forms.rewrite import Rewrite

Ints = NDArray[np.int64]
#: Powers of two in a difference of two int8 codes are below this.
_POWERS = 8
#: An operand: (operator, position).
_Slot = tuple[int, int]
#: Powers of two that codes relative to the zero point must not have.
_Powers = range
_WHY = "products half-way between two codes are rounded up, down or to even; the operands now have none"


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand of a MUL: its tensor, zero point, codes that occur, and whether a table makes it."""

    tensor: int
    zero_point: int
    codes: Codes
    in_table: bool
    elements: int

    def cost(self, powers: _Powers) -> tuple[int, float]:
        """Return the elements that pass a new table, and the share of codes that move."""
        share = float(np.mean(_has_power(self.codes - np.int64(self.zero_point), powers)))
        return (self.elements if share and not self.in_table else 0), share


def tie_free(
    integer: IntegerModel, form: Lookup, inside: Collection[int] | None = None
) -> tuple[IntegerModel, tuple[Rewrite, ...]]:
    """Return the model with operands of MUL that give no ties, where the scales allow it."""
    graph = view(integer.model)
    chosen = [op for op in graph.ops if inside is None or integer.operators[op.index] in inside]
    wanted = {slot: powers for op in chosen for slot, powers in _wanted(op)}
    if not wanted:
        return integer, ()
    writing = _Writing(integer, form, wanted)
    for operator in graph.ops:
        writing.operator(operator)
    return writing.result(), tuple(writing.rewrites)


def shift_of(operator: OperatorView) -> int | None:
    """Return k if the multiplier of a MUL of two int8 activations is just below 2**-k; None if it is not."""
    graph = operator.graph
    used = [params_of(graph, t) for t in (*operator.inputs, *operator.outputs)]
    if len(used) != 3 or any(p is None for p in used):
        return None
    one, other, made = (float(p.scale[0]) for p in used if p is not None)
    exponent = exponent_of(one * other / made)
    return -exponent if exponent is not None and exponent <= -1 else None


def _wanted(operator: OperatorView) -> Iterator[tuple[_Slot, _Powers]]:
    """Yield the powers of two that the operands of a MUL must do without, if there are ties."""
    if operator.name != "MUL" or (shift := shift_of(operator)) is None:
        return
    operands = [_operand(operator.graph, t) for t in operator.inputs]
    if any(operator.graph.constant(t) is not None for t in operator.inputs) or operands[0].tensor == operands[1].tensor:
        return
    pairs = list(_pairs(shift))
    if not pairs:
        return
    costs = [[o.cost(p) for o, p in zip(operands, pair, strict=True)] for pair in pairs]
    totals = [(sum(new for new, _ in cost), sum(share for _, share in cost)) for cost in costs]
    best = pairs[min(range(len(pairs)), key=totals.__getitem__)]
    for position, (operand, powers) in enumerate(zip(operands, best, strict=True)):
        if operand.cost(powers)[1]:
            yield (operator.index, position), powers


def _pairs(shift: int) -> Iterator[tuple[_Powers, _Powers]]:
    """Yield the powers that two factors must do without, so that no product has the power shift - 1."""
    for least in range(1, shift):
        high, band = range(least, _POWERS + 1), range(shift - least, shift)
        yield high, band
        yield band, high


def _operand(graph: GraphView, tensor: int) -> _Operand:
    table = _table(graph, tensor)
    codes = np.arange(LEAST, -LEAST, dtype=np.int8) if table is None else np.unique(table)
    elements = prod(graph.tensors[tensor].shape)
    return _Operand(tensor, graph.zero_point(tensor), codes, table is not None, elements)


def _table(graph: GraphView, tensor: int) -> Codes | None:
    """Return the table that a tensor's codes are looked up in; None if they are not."""
    maker = graph.maker(tensor)
    if maker is None or maker.name != "GATHER" or tensor in graph.outputs:
        return None
    table = graph.constant(maker.inputs[0])
    return table if table is not None and table.shape == (-2 * LEAST,) and table.dtype == np.int8 else None


def _has_power(values: Ints, powers: _Powers) -> NDArray[np.bool_]:
    """Return which numbers other than 0 are odd multiples of these powers of two."""
    lowest = values & -values
    return np.isin(lowest, [1 << power for power in powers])


def without_powers(codes: Codes, zero_point: int, powers: _Powers) -> Codes:
    """Return codes with those that have such a power of two, relative to the zero point, moved by one.

    Neighbours that move go up and down in turn, so that the mean stays.
    """
    values = codes.astype(np.int64) - zero_point
    up = (values >> powers.start) & 1 == 0
    up = np.where(codes == -LEAST - 1, False, np.where(codes == LEAST, True, up))
    moved = codes.astype(np.int64) + np.where(up, 1, -1)
    return np.where(_has_power(values, powers), moved, codes).astype(np.int8)


class _Writing:
    """A model while operands of its MULs are moved to codes without ties."""

    def __init__(self, integer: IntegerModel, form: Lookup, wanted: Mapping[_Slot, _Powers]) -> None:
        self._integer, self._form, self._wanted = integer, form, wanted
        self._editing = Editing(integer.model)
        self._graph = self._editing.graph
        self._moved: dict[tuple[int, _Powers], int] = {}
        self.rewrites: list[Rewrite] = []

    def operator(self, operator: OperatorView) -> None:
        """Write an operator, its moved operands first; a table that only such a MUL reads is changed in place."""
        made = operator.outputs[0] if operator.outputs else -1
        powers = self._of_all_readers(made)
        table = None if powers is None else _table(self._graph, made)
        if powers is not None and table is not None:
            self._moved[made, powers] = self._editing.new(made)
            self._gather(operator, table, made, powers, self._editing.new(made))
            return
        slots = [(operator.index, position) for position in range(len(operator.inputs))]
        inputs = [self._editing.new(t) for t in operator.inputs]
        for position, slot in enumerate(slots):
            if slot in self._wanted:
                inputs[position] = self._operand(operator, operator.inputs[position], self._wanted[slot])
        self._editing.copy(operator, self._integer.operators[operator.index], inputs)

    def result(self) -> IntegerModel:
        """Return the model."""
        return rewritten_to(self._integer, self._editing)

    def _of_all_readers(self, tensor: int) -> _Powers | None:
        """Return the powers that all operands which read a tensor do without; None if they differ."""
        slots = [(r.index, p) for r in self._graph.readers(tensor) for p, t in enumerate(r.inputs) if t == tensor]
        found = {self._wanted.get(slot) for slot in slots}
        return found.pop() if len(found) == 1 else None

    def _operand(self, operator: OperatorView, tensor: int, powers: _Powers) -> int:
        """Return the tensor without these powers, which is written when it is first needed."""
        if (tensor, powers) not in self._moved:
            source = self._editing.new(tensor)
            result = self._editing.tensor(self._editing.spec(source), "/without_ties")
            self._moved[tensor, powers] = result
            maker, table = self._graph.maker(tensor), _table(self._graph, tensor)
            if maker is not None and table is not None:
                self._gather(maker, table, tensor, powers, result)
            else:
                codes = np.arange(LEAST, -LEAST, dtype=np.int8)
                entries = without_powers(codes, self._graph.zero_point(tensor), powers)
                quantization = self._graph.tensors[tensor].quantization
                write(self._editing, self._form, source, result, entries, quantization, -1)
                self._report(operator, tensor, ", ".join(self._form.operators), entries)
        return self._moved[tensor, powers]

    def _gather(self, maker: OperatorView, table: Codes, tensor: int, powers: _Powers, result: int) -> None:
        entries = without_powers(table, self._graph.zero_point(tensor), powers)
        name = self._graph.tensors[tensor].name or ""
        constant = self._editing.constant(f"{name}/table", entries, self._graph.tensors[tensor].quantization)
        origin = self._integer.operators[maker.index]
        places = self._editing.new(maker.inputs[1])
        self._editing.operator("GATHER", [constant, places], [result], origin, "GatherOptions", 2)
        self._report(maker, tensor, "GATHER", entries)

    def _report(self, operator: OperatorView, tensor: int, becomes: str, entries: Codes) -> None:
        origin, name = self._integer.operators[operator.index], self._graph.tensors[tensor].name or ""
        origin = origin if origin >= 0 else origin_near(self._integer, self._graph, tensor)
        self.rewrites.append(Rewrite(origin, "MUL operand", name, becomes, _WHY, entries.nbytes, "codes move by one"))
