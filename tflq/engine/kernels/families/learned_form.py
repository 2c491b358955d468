"""The frame of forms that a file of a profile states: a grammar, with points by which rows of an operator compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tflq.engine.kernels.kernel import Kernel, Node, Prepared
from tflq.engine.kernels.table import Rows
from tflq.engine.numerics.arithmetic import Arithmetic

Point = TypeVar("Point")


@dataclass(frozen=True, slots=True)
class LearnedForm:
    """A grammar: the reader of a point, and what makes a row compute by one, given the operator's other rows, too.

    Only `operators` can have it, or all if there are none.
    """

    read: Callable[[Mapping[str, Any]], Any]
    changed: Callable[[Kernel, Rows, Any], Kernel]
    operators: tuple[str, ...] = ()


def form(
    read: Callable[[Mapping[str, Any]], Point], operators: tuple[str, ...] = (), *, keeps_rule: bool = False
) -> Callable[[Callable[[Node, Arithmetic, Kernel, Point], Prepared]], LearnedForm]:
    """Return a decorator: a prepare that is also handed the row that it changes and the point becomes a form.

    XNNPACK's rule goes, since the form has the node in any case; `keeps_rule`: it stays.
    """

    def made(prepare: Callable[[Node, Arithmetic, Kernel, Point], Prepared]) -> LearnedForm:
        def changed(row: Kernel, rows: Rows, point: Point) -> Kernel:
            def prepare_by_point(node: Node, arithmetic: Arithmetic) -> Prepared:
                return prepare(node, arithmetic, row, point)

            return replace(row, prepare=prepare_by_point, takes=row.takes if keeps_rule else None)

        return LearnedForm(read, changed, operators)

    return made
