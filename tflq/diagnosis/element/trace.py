"""The computation of an element of an operator's output, from its input codes to its own code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.diagnosis.element.movement import move
from tflq.diagnosis.element.registry import TRACERS
from tflq.diagnosis.element.steps import Index, Site, Working
from tflq.engine.interpreter import Plan, State, run
from tflq.engine.interpreter.evaluation import bound, evaluate, inputs_of
from tflq.engine.interpreter.state import variable
from tflq.engine.numerics.steps import Step
from tflq.errors import OptionError
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class ElementTrace:
    """One element under `profile`, or another named source. `expected` is the kernel's own result.

    The last step's value equals `expected`. If `is_told` is false, the steps inside this kernel are unknown, and there
    is only the result.
    """

    op: str
    profile: str
    index: Index
    shape: Index  # of the output
    inputs: tuple[str, ...]  # the operands' names, by position; "" where absent
    working: Working
    expected: int | float | bool
    is_told: bool


def trace_element(plan: Plan, inputs: Mapping[int, Array], index: Sequence[int], output: int = 0) -> ElementTrace:
    """Trace one element of a single operator's output; `plan` holds that operator alone.

    Raises:
        OptionError: The index does not lie in the output.
    """
    with np.errstate(all="ignore"):
        return _trace(plan, inputs, tuple(index), output)


def _trace(plan: Plan, inputs: Mapping[int, Array], index: Index, output: int) -> ElementTrace:
    step = plan.steps[0]
    starting = {tensor: variable(plan, State(), tensor) for tensor in plan.variables}
    values = inputs_of(plan, step, {**starting, **inputs})
    out = run(plan, inputs, keep_all=True).values[step.outputs[output]]
    if len(index) != out.ndim or not all(0 <= i < size for i, size in zip(index, out.shape, strict=True)):
        raise OptionError(f"element {list(index)} does not lie in the output, whose shape is {list(out.shape)}")
    working = None if step.kernel.session else _work_out(plan, values, output, index, out.shape)
    expected = np.asarray(out[index]).item()
    return ElementTrace(
        op=step.op,
        profile=plan.profile.name,
        index=index,
        shape=out.shape,
        inputs=tuple("" if operand is None else operand.name for operand in step.node.inputs),
        working=working or Working((), (Step("result of the kernel", expected),)),
        expected=expected,
        is_told=working is not None,
    )


def _work_out(plan: Plan, values: Sequence[Array | None], output: int, index: Index, shape: Index) -> Working | None:
    """Return the computation, if it is known for this kernel, or if the kernel only moves elements."""
    step = plan.steps[0]
    prepared = bound(plan, step, State(), values)
    site = Site(step.node, prepared.data, plan.profile.arithmetic, values, index, shape)
    trace = TRACERS.get(prepared.eval)
    if trace is not None:
        return trace(site)
    return move(site, lambda operands: evaluate(prepared, step, operands)[output][index])
