"""Constraints on a scheme beyond the rules of operators."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on a scheme beyond LiteRT's rules.

    `joins_rescale`: operators that join tensors get some of them rescaled if that gives finer scales. Constant operands
    of `own_constants` operators are groups of their own. Weights of `one_scale` operators have one scale for all
    channels.
    """

    joins_rescale: bool = True
    own_constants: frozenset[str] = frozenset()
    one_scale: frozenset[str] = frozenset()
    operators: frozenset[int] = frozenset()  # that keep to these; others are as LiteRT wants them


NONE = Constraints()
