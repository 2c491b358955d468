"""Run one bound operator on arrays, and compare its results with the declared types and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tflq.engine.interpreter.binding import bind, failure
from tflq.engine.interpreter.plan import Plan, Step
from tflq.engine.interpreter.state import State
from tflq.engine.kernels.kernel import Prepared, Session, Shape
from tflq.errors import OperatorFailed, TflqError
from tflq.typing import Array


def evaluate(
    prepared: Prepared, step: Step, values: Sequence[Array | None], session: Session | None = None
) -> tuple[Array, ...]:
    """Run one bound operator; return its outputs, then the new values of the variables it updates.

    If an array does not have its tensor's declared type or prepared shape, an OperatorFailed is raised: the kernels
    that read it rely on both.
    """
    try:
        if step.kernel.session and not prepared.alone:
            result = prepared.eval(prepared.data, session, *values)
        else:
            result = prepared.eval(prepared.data, *values)
    except TflqError:
        raise
    except Exception as error:
        raise failure(step.op, step.index, "eval", error) from error
    results = _arrays(result)
    if len(results) != len(step.outputs) + len(prepared.updates):
        raise OperatorFailed(step.op, step.index, "eval", f"made {len(results)} arrays")
    for result, dtype, shape in zip(results, step.dtypes, prepared.shapes):  # noqa: B905 (updates follow the outputs)
        if result.dtype != dtype or result.shape != shape:
            _check_result(step, result, dtype, shape)
    if prepared.updates:
        for position, result in updates_of(prepared, step, results):
            before = values[position]
            assert before is not None  # checked when the step was bound
            _check_result(step, result, before.dtype, before.shape)
    return results


def updates_of(prepared: Prepared, step: Step, results: tuple[Array, ...]) -> Iterable[tuple[int, Array]]:
    """Return input positions of the variables that the step updates, and their new values."""
    return zip(prepared.updates, results[len(step.outputs) :], strict=True)


def _check_result(step: Step, result: Array, dtype: np.dtype[np.generic], shape: Shape | None) -> None:
    """Raise if an array does not match its tensor's declaration; a shape of None matches any."""
    if result.dtype != dtype:
        raise OperatorFailed(step.op, step.index, "eval", f"made type {result.dtype}, declared {dtype}")
    if shape is not None and result.shape != shape:
        raise OperatorFailed(step.op, step.index, "eval", f"made shape {result.shape}, prepared {shape}")


def _arrays(result: Any) -> tuple[Array, ...]:
    """Return an eval's arrays; NumPy makes scalars of arrays without dimensions, which are wrapped again."""
    if isinstance(result, np.ndarray):
        return (result,)
    return tuple(map(np.asarray, result)) if isinstance(result, tuple) else (np.asarray(result),)


def inputs_of(plan: Plan, step: Step, values: Mapping[int, Array]) -> list[Array | None]:
    """Return the arrays a step reads, in operand order: from `values`, or the constants of the model."""
    constants = plan.constants
    return [values.get(tensor, constants[tensor]) for tensor in step.inputs]


def bound(plan: Plan, step: Step, state: State, values: Sequence[Array | None], room: int | None = None) -> Prepared:
    """Return the step's prepared form, bound now if its shapes were not known before.

    Bindings are kept for equal shapes. Preparing may take `room` bytes.
    """
    if step.prepared is not None:
        return step.prepared
    key = tuple(
        None if v is None else (v.shape, v.tobytes() if position in step.kernel.shape_operands else None)
        for position, v in enumerate(values)
    )
    known = state.bound.get(step.index)
    if known is None or known[0] != key:
        known = (key, bind(step, plan.profile.arithmetic, values, room))
        state.bound[step.index] = known
    return known[1]
