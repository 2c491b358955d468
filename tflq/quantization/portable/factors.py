"""Which scale of a product moves so that its multiplier is a power of two: the result's, or that of an operand.

The scale of the result grows if nothing else depends on it. If it belongs to a sum, which needs powers of two of its
own, an operand's scale grows instead: that of a table is free. No scale is moved by two products.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tflq.quantization.portable.sums import Sum, kin
from tflq.quantization.scheme.scheme import Form, Scheme


@dataclass(frozen=True, slots=True)
class Product:
    """A MUL of two activations: the groups of its operands and its result, and the one that moves."""

    operands: tuple[Form, Form]
    result: Form
    moving: Form

    @property
    def other(self) -> Form:
        """The operand that does not move, if one of them does."""
        one, other = self.operands
        return other if self.moving == one else one


def products(plan: Scheme, added: Sequence[Sum], inside: Collection[int]) -> tuple[Product, ...]:
    """Return the products among operators `inside`, without those all of whose scales depend on each other."""
    related = kin(added)
    bound = frozenset[Form]().union(*related)
    found, taken = list[Product](), set[Form]()
    for index in sorted(inside):
        op = plan.model.graph.op(index)
        one, other = (plan.read.get((index, position)) for position in (0, 1))
        result = plan.results.get(op.outputs[0]) if op.outputs else None
        if plan.modes[index] is None or op.name != "MUL" or one is None or other is None or result is None:
            continue
        groups = (result, one, other)
        free = [g for g in groups if g not in bound | taken | plan.fixed.keys() and groups.count(g) == 1]
        apart = not any({result, operand} <= each for each in related for operand in (one, other))
        if not free and apart and groups.count(result) == 1 and result not in taken | plan.fixed.keys():
            free = [result]
        if free:
            taken.add(free[0])
            found.append(Product((one, other), result, free[0]))
    return tuple(found)
