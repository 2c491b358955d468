"""Element-wise operators of one input: the bodies that their kernel files share.

On 8-bit inputs such an operator is a function of 256 codes: it is evaluated once over all of them and looked up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.kernels.kernel import Array, Node, Operand, Prepared


@dataclass(frozen=True, slots=True, eq=False)
class Tabulated:
    """An operator on 8-bit codes as a table: `table[code as uint8]` is the output's code. `data` is what made it."""

    data: Any
    table: Array


def prepare_unary(node: Node, data: Any, evaluate: Callable[[Any, Array], Array], dtype: np.dtype[Any]) -> Prepared:
    """Bind `evaluate(data, x)`, through a table of all codes where the input `dtype` has 8 bits."""
    shape = node.input(0).shape
    if dtype.itemsize == 1 and dtype != np.bool_:
        codes = np.arange(256, dtype=np.uint8).view(dtype)
        return Prepared((shape,), Tabulated(data, evaluate(data, codes)), eval_table)
    return Prepared((shape,), data, evaluate)


def eval_table(data: Tabulated, x: Array) -> Array:
    """Look every code up. No rounding: that happened when the table was made."""
    looked_up: Array = data.table[x.view(np.uint8)]
    return looked_up


def same_type(node: Node) -> tuple[Operand, Operand]:
    """Input and output of a one-input operator whose types must agree."""
    x, y = node.input(0), node.outputs[0]
    node.check(x.type == y.type, "input and output types differ", y, expected=x.type.label, got=y.type.label)
    return x, y
