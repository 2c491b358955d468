"""How much an operator computes, from shapes and options alone."""

from __future__ import annotations

from math import prod

from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.kernels.facts.counts import Sizes


def multiply_accumulates(op: str, sizes: Sizes) -> int:
    """Return the number of multiply-accumulates that the operator takes; 0 if it is no sum of products."""
    fact = OPERATORS.get(op)
    return 0 if fact is None or fact.products is None else max(0, fact.products(sizes))


def work_of(op: str, sizes: Sizes) -> int:
    """Return the passes of the operator's innermost loop, at least one for each element that it reads or writes."""
    moved = sizes.elements(*range(len(sizes.inputs))) + sum(map(prod, sizes.outputs))
    fact = OPERATORS.get(op)
    count = None if fact is None else fact.products or fact.passes
    return moved if count is None else max(moved, count(sizes))
