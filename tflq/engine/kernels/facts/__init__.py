"""Facts about operators, one row each: what quantization, proof, tracing, resolvers and reports need to know."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tflq.engine.kernels.facts import binary, moves, products, reductions, state, unary
from tflq.engine.kernels.facts.fact import Fact

__all__ = ["OPERATORS", "Fact"]

_ROWS = sorted(
    (*unary.FACTS, *binary.FACTS, *moves.FACTS, *state.FACTS, *products.FACTS, *reductions.FACTS),
    key=lambda fact: fact.op,
)

#: Every operator that has kernels.
OPERATORS: Mapping[str, Fact] = MappingProxyType({fact.op: fact for fact in _ROWS})
