"""Run one bound operator on arrays from outside; state from run to run.

Arrays from outside: from callers, files, recordings, dumps and runtimes.

Kernels are compiled without bounds checks and rely on the type and the shape of their inputs. So every array from
outside this package goes through `admit` before it reaches a kernel.

State that lives from run to run, and the initial arrays of a run.

Run one bound operator on arrays, and compare its results with the declared types and shapes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from tflq.engine.interpreter.binding import bind, failure
from tflq.engine.interpreter.plan import (
    PREPARE_STEP_WORK,
    Bindings,
    Footprint,
    MemoryBudget,
    Meter,
    Plan,
    Step,
    beyond,
    sizes_of,
)
from tflq.engine.kernels.checks import NARROW
from tflq.engine.kernels.kernel import CalledSubgraphs, Operand, Prepared, Shape
from tflq.errors import InputError, OperatorFailed, ShapeError, TflqError, TypeMismatchError, UnsupportedError
from tflq.model.ir import CARRIER, TensorSpec, TensorType
from tflq.typing import Array

#: Types whose dtype for callers differs from the one inside kernels.
OUTSIDE = MappingProxyType(
    {TensorType.STRING: np.bytes_, TensorType.FLOAT8_E4M3FN: np.int8, TensorType.FLOAT8_E5M2: np.int8}
)


def admit(value: object, type_: TensorType | int, shape: Sequence[int] | None, name: str) -> Array:
    """Return `value` in the form that kernels use for a type: native byte order, C-contiguous, aligned.

    Strings become bytes. Numbers are not converted: their type must be the tensor's. A copy is made only if it is
    necessary.

    Args:
        value: An array, or a value that NumPy converts to one.
        type_: The tensor's type.
        shape: Its shape, with -1 for a dimension of any size; None for any shape.
        name: Its name in errors.

    Raises:
        TypeMismatchError: The elements have another type.
        ShapeError: The shape differs.
        InputError: It is not an array, has a code beyond the range of a 4-bit or 2-bit type, or text that is not UTF-8.
        UnsupportedError: The tensor's type is unknown.
    """
    if not isinstance(type_, TensorType):
        raise UnsupportedError("tensor", types=f"type {type_}", reason=name)
    array = _array(value, name)
    array = _strings(array, name) if type_ == TensorType.STRING else _numbers(array, type_, name)
    if shape is not None and not fits(shape, array.shape):
        raise ShapeError(name, shape, array.shape)
    if type_ in NARROW:
        _check_range(array, NARROW[type_], name)
    return np.require(array, requirements=("C", "A"))


def open_shape(spec: TensorSpec) -> tuple[int, ...] | None:
    """Return a tensor's shape in the file, with -1 for open dimensions; None if the rank is also open."""
    if not spec.shape and not spec.has_rank and not spec.shape_signature:
        return None
    return spec.shape_signature or spec.shape


def fits(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether a given shape is `shape`, in which -1 matches any size."""
    return len(shape) == len(other) and all(want in (-1, size) for want, size in zip(shape, other, strict=True))


def _array(value: object, name: str) -> Array:
    try:
        return np.asarray(value)
    except MemoryError:
        raise
    except Exception as error:  # a ragged list, or any error of an object's own conversion
        raise InputError(f"not an array: {error}", name=name) from error


def _numbers(array: Array, type_: TensorType, name: str) -> Array:
    want = CARRIER[type_]
    if array.dtype == want:
        return array
    if array.dtype.newbyteorder("=") == want:
        return array.astype(want)
    if type_ == TensorType.BFLOAT16 and array.dtype.name == "bfloat16":
        return array.view(want)
    if type_ in OUTSIDE and array.dtype == OUTSIDE[type_]:
        return array.view(want)
    raise TypeMismatchError(name, OUTSIDE.get(type_, want.type).__name__, array.dtype)


def _strings(array: Array, name: str) -> Array:
    if array.dtype.kind not in "OSU":
        raise TypeMismatchError(name, "strings", array.dtype)
    out = np.empty(array.shape, object)
    for position, item in enumerate(array.flat):
        out.flat[position] = _bytes_of(item, name)
    return out


def _bytes_of(item: object, name: str) -> bytes:
    if isinstance(item, str):
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"not UTF-8 text: {error}", name=name) from error
    if isinstance(item, bytes):
        return bytes(item)
    raise TypeMismatchError(name, "str or bytes", type(item).__name__)


def _check_range(array: Array, limits: tuple[int, int], name: str) -> None:
    low, high = limits
    if array.size and not (low <= array.min() and array.max() <= high):
        raise InputError("code out of range", name=name, expected=f"{low} to {high}")


@dataclass(slots=True, eq=False)
class State:
    """State that lives from run to run.

    It consists of variable tensors, steps bound to shapes that are known only at run time, the operators' memory,
    resources, and the routine of the latest plan. Another State may share the resources.
    """

    variables: dict[int, Array] = field(default_factory=dict)
    bound: Bindings = field(default_factory=dict)
    memory: dict[object, Any] = field(default_factory=dict)
    resources: dict[Hashable, Any] = field(default_factory=dict)
    known: Plan | None = None
    routine: Any = None  # of that plan; None if there is none
    called: dict[int, tuple[Plan, Any]] = field(default_factory=dict)  # plans and routines of subgraphs, by number
    inputs: Mapping[int, Array] | None = None  # the inputs of every run; None if they change between runs


def check_resources(plan: Plan, state: State, live_bytes: int, place: str = "") -> None:
    """Compare the memory of variables with handles, together with `live_bytes` of tensors, with the limit."""
    if state.resources:
        taken = Footprint()
        taken.add(*state.resources.values())
        if taken.bytes + live_bytes > plan.limits.memory:
            raise beyond(place, taken.bytes + live_bytes, plan.limits.memory, "variables that have handles")


def initial_value(operand: Operand) -> Array:
    """Return a variable tensor's value after a reset: zeros, or the zero point for int8, cut to eight bits.

    Source: LiteRT 2.3 ResetVariableTensor.
    """
    fill = operand.zero_point if operand.type == TensorType.INT8 else 0
    return np.full(operand.shape, np.int64(fill).astype(CARRIER[operand.type]))


def variable(plan: Plan, state: State, tensor: int) -> Array:
    """Return the present value of a variable tensor."""
    operand, value = plan.operands[tensor], state.variables.get(tensor)
    if value is None:
        value = state.variables[tensor] = initial_value(operand)
    else:
        _check_carried(operand, operand.shape, value)
    return value


def check_inputs(plan: Plan, inputs: Mapping[int, Array]) -> None:
    """Raise unless the arrays match the graph's inputs in the planned form: nothing is converted here."""
    for tensor, shape in plan.expected.items():
        operand, value = plan.operands[tensor], inputs.get(tensor)
        if value is None:
            raise InputError("no value is given", name=_name(operand))
        _check_carried(operand, shape, value)
    if len(inputs) != len(plan.expected):
        tensor = min(inputs.keys() - plan.expected.keys())
        raise InputError("is not an input of the graph", name=_name(plan.operands[tensor]))


def _check_carried(operand: Operand, shape: Shape | None, value: Array) -> None:
    if value.dtype != CARRIER[operand.type]:
        raise TypeMismatchError(_name(operand), CARRIER[operand.type], value.dtype)
    if shape is not None and value.shape != shape:
        raise ShapeError(_name(operand), shape, value.shape)


def _name(operand: Operand) -> str:
    return operand.name or f"#{operand.index}"


def evaluate(
    prepared: Prepared, step: Step, values: Sequence[Array | None], session: CalledSubgraphs | None = None
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


#: Bindings of a step that are kept, and bytes of data from which on only the latest is.
_MOST_BINDINGS, _SMALL = 64, 1 << 16


def bound(
    plan: Plan, step: Step, bindings: Bindings, values: Sequence[Array | None], room: int | None = None
) -> tuple[Prepared, bool]:
    """Return the step's prepared form, and whether it was bound now: its shapes were not known before.

    Bindings are kept for equal shapes. Preparing may take `room` bytes.
    """
    if step.prepared is not None:
        return step.prepared, False
    key = tuple(
        None if v is None else (v.shape, v.tobytes() if position in step.kernel.shape_operands else None)
        for position, v in enumerate(values)
    )
    known = bindings.setdefault(step.index, {})
    if key in known:
        return known[key], False
    prepared, held = bind(step, plan.profile.arithmetic, values, room), Footprint()
    held.add(prepared.data)
    if held.bytes > _SMALL or len(known) == _MOST_BINDINGS:
        known.clear()
    known[key] = prepared
    return prepared, True


def bound_within(
    plan: Plan, step: Step, bindings: Bindings, values: Sequence[Array | None], budget: MemoryBudget, meter: Meter
) -> Prepared:
    """Return the step's prepared form, after comparing its memory and work with the limits."""
    prepared, is_new = bound(plan, step, bindings, values, budget.room)
    if step.prepared is None:
        meter.spend((prepared.work or 0) + PREPARE_STEP_WORK * is_new, step.place)
    scratch = prepared.scratch
    size = scratch if isinstance(scratch, int) else scratch(prepared.data, *values)
    budget.check(sizes_of(step.node.outputs, prepared.shapes) + size, step.place, "its results and working memory")
    return prepared
