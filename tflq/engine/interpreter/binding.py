"""Bind an operator to its kernel: before the model runs, or once its inputs' shapes are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tflq.engine.interpreter.memory import is_beyond_memory
from tflq.engine.interpreter.plan import Step
from tflq.engine.kernels.facts.counts import Sizes
from tflq.engine.kernels.kernel import Kernel, Node, Operand, Prepared
from tflq.engine.kernels.work import work_of
from tflq.engine.numerics.arithmetic import Arithmetic
from tflq.errors import LimitError, OperatorFailed, TflqError, UndefinedResultError
from tflq.model.ir.model import MissingField
from tflq.typing import Array


def prepare(kernel: Kernel, node: Node, arithmetic: Arithmetic) -> Prepared:
    """Run a kernel's prepare; unforeseen errors become an OperatorFailed."""
    try:
        with np.errstate(all="ignore"):
            prepared = kernel.prepare(node, arithmetic)
    except UndefinedResultError as error:
        raise UndefinedResultError(error.function, error.reason, op=node.op, index=node.index) from error
    except TflqError:
        raise
    except MissingField as error:
        node.refuse("options", expected=f"a table with the field {error.name}", got=error.table)
    except Exception as error:
        if _is_undefined_conversion(error):
            reason = f"scales or options give a number that no integer can hold ({error})"
            raise UndefinedResultError("prepare", reason, op=node.op, index=node.index) from error
        raise failure(node.op, node.index, "prepare", error) from error
    if len(prepared.shapes) != len(node.outputs):
        node.refuse("number of outputs", expected=len(prepared.shapes), got=len(node.outputs))
    for position in prepared.updates:
        node.input(position)  # must be there
    if prepared.work is not None:
        return prepared
    return replace(prepared, work=work_of(node.op, Sizes.of(node, prepared.shapes)))


def _is_undefined_conversion(error: Exception) -> bool:
    """Return whether Python refused to convert an infinity or NaN to an integer, which C++ leaves undefined."""
    return isinstance(error, OverflowError) or (isinstance(error, ValueError) and "NaN to integer" in str(error))


def failure(op: str, index: int, phase: str, error: Exception) -> TflqError:
    """Return the error for an unforeseen error of a kernel."""
    if is_beyond_memory(error):
        return LimitError(f"operator {index} {op}: {phase} takes more memory than is available: {error}")
    return OperatorFailed(op, index, phase, f"{type(error).__name__}: {error}")


def bind(step: Step, arithmetic: Arithmetic, values: Sequence[Array | None], room: int | None = None) -> Prepared:
    """Prepare with the inputs' present shapes, and for shape operands their values, in `room` bytes."""
    reveal = step.kernel.shape_operands
    operands = tuple(
        None if operand is None or value is None else _with_value(operand, value, position in reveal)
        for position, (operand, value) in enumerate(zip(step.node.inputs, values, strict=True))
    )
    return prepare(step.kernel, replace(step.node, inputs=operands, room=room), arithmetic)


def _with_value(operand: Operand, value: Array, reveal: bool) -> Operand:
    if operand.is_constant:
        return replace(operand, shape=value.shape, value=value)
    return replace(operand, shape=value.shape, value=value if reveal else None, is_revealed=reveal)
