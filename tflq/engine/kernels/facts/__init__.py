"""Facts about operators, one row each: what quantization, proof, tracing, resolvers and reports need to know."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tflq.engine.kernels.facts import rows
from tflq.engine.kernels.facts.fact import Fact

__all__ = ["OPERATORS", "Fact"]

_ROWS = sorted(
    (
        *rows.UNARY_FACTS,
        *rows.FACTS,
        *rows.MOVES_FACTS,
        *rows.STATE_FACTS,
        *rows.PRODUCTS_FACTS,
        *rows.REDUCTIONS_FACTS,
    ),
    key=lambda fact: fact.op,
)

#: Every operator that has kernels.
OPERATORS: Mapping[str, Fact] = MappingProxyType({fact.op: fact for fact in _ROWS})
