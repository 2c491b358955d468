"""Plans and their steps: order, limits, memory, and what is known of results.

Limits on the memory and work of a run, and the count of work.

Plans and their steps, as values: `planning` makes them, `run` executes them.

The order of a subgraph's reads and writes: a check, and last uses.

The promises of a graph's results: a result is no more exact than its inputs.

The memory that a plan needs, known before anything of that size is allocated.

Bytes of the arrays that an object holds, without those of the model's file.

The results of a run: tensors by index, the operator that made each, and its promise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from types import FunctionType
from typing import Any, NoReturn, Protocol

import numpy as np

from tflq.engine.kernels.kernel import EXACT, Exactness, Kernel, Node, Operand, Prepared, Shape
from tflq.engine.profiles import Profile
from tflq.errors import LimitError, ModelError
from tflq.interrupts import checkpoint
from tflq.model.ir import CARRIER, GraphView, Model
from tflq.typing import Array

#: Default limit on bytes that are held at the same time, without constants of the file.
DEFAULT_MEMORY = 4 << 30
#: Default limit on passes of innermost loops (tflq/engine/kernels/work.py).
DEFAULT_WORK = 10**13

#: Work counted for calling a subgraph, and for each of its operators: roughly what BLAS does in many times the time of
#: Python's overhead. So an endless loop of small operators ends within seconds rather than days.
CALL_WORK, STEP_WORK = 60_000_000, 24_000_000
#: Work counted for preparing a subgraph for new input shapes, and for each of its operators.
PREPARE_WORK, PREPARE_STEP_WORK = 1_000_000_000, 200_000_000


def call_work(steps: int) -> int:
    """Return the work counted for calling a subgraph with this number of operators, besides their own work."""
    return CALL_WORK + STEP_WORK * steps


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run. An operator that would exceed them raises a LimitError before it begins.

    Attributes:
        memory: Bytes of tensors and of operators' working memory, alive at the same time. Constants of the file do not
            count; data derived from them are compared with the same limit separately.
        work: Multiply-accumulates, or other passes of the operators' innermost loops, of one run.
    """

    memory: int = DEFAULT_MEMORY
    work: int = DEFAULT_WORK


_GENEROUS = Limits()
_CURRENT: ContextVar[Limits] = ContextVar("limits", default=_GENEROUS)


def current_limits() -> Limits:
    """Return the limits of plans that are made here without limits of their own."""
    return _CURRENT.get()


@contextmanager
def limits_within(limits: Limits) -> Iterator[None]:
    """Set the current limits for the block, in this thread, as numpy.errstate does for errors.

    They decide only whether there is a result, never its value.
    """
    token = _CURRENT.set(limits)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Meter:
    """Work that has been done, compared with a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, work: int, place: str) -> None:
        """Count work before it is done; raise a LimitError if it is too much."""
        checkpoint()
        self.spent += work
        if self.spent > self.limit:
            raise LimitError(
                f"{place}work of {self.spent} passes of innermost loops, {work} of them here, more than the limit of "
                f"{self.limit} passes; raise work_limit (--work-limit) to allow it"
            )


#: Bindings of steps whose shapes are known only at run time, by step: the bound forms by shapes.
Bindings = dict[int, dict[object, Prepared]]
#: Shapes of a subgraph's inputs in order, None for those that change between calls.
Shapes = tuple[Shape | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One operator in execution order. `prepared` is None for a step that is bound at run time."""

    index: int
    op: str
    node: Node
    kernel: Kernel
    prepared: Prepared | None
    inputs: tuple[int, ...]  # tensor indices, -1 where absent
    outputs: tuple[int, ...]  # those that are present
    last_uses: tuple[int, ...]  # tensors that no later step reads
    dtypes: tuple[np.dtype[np.generic], ...]  # of the arrays that carry its outputs
    promise: Exactness  # for its results, if its inputs are the runtime's own
    live_bytes: int = 0  # alive while it runs, if the plan is settled

    @property
    def place(self) -> str:
        """The operator's place, with which errors begin."""
        return f"operator {self.index} {self.op}: "


class Subgraphs(Protocol):
    """The plans of the subgraphs that a plan's operators call."""

    def begin(self) -> None:
        """Begin a run, which may prepare as much as any other run."""

    def plan(self, subgraph: int, shapes: Shapes) -> tuple[Plan, Bindings]:
        """Return the subgraph's plan for inputs of those shapes, and its late bindings."""


class Certain(Protocol):
    """Values of computed tensors that are certain before the model runs.

    `early` are the tensors whose shapes depend on such values: a runtime may know them only when it runs.
    """

    @property
    def early(self) -> Collection[int]:
        """Their indices."""

    def everything(self) -> Mapping[int, Array]:
        """Return them by tensor; they are computed once."""


@dataclass(frozen=True, slots=True)
class PlanCost:
    """Memory in bytes, and work in passes of innermost loops, as far as they are known before the model runs."""

    peak_memory: int  # alive at the same time
    kept_memory: int  # alive at the same time if nothing is released
    derived_memory: int  # of data derived from constants
    work: int  # of one run, without calls
    least_work: int  # lower bound for one run, with calls: of several subgraphs the one with the least
    is_settled: bool  # all shapes are known, those of called subgraphs too


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A subgraph bound to a profile, for given input shapes."""

    model: Model
    graph: GraphView
    profile: Profile
    operands: tuple[Operand, ...]  # by tensor index; shapes as far as they are known
    expected: Mapping[int, Shape | None]  # by graph input, the planned shape; None: any
    known: tuple[bool, ...]  # by tensor index: True if the operand's shape is certain before the model runs
    steps: tuple[Step, ...]
    variables: tuple[int, ...]  # tensors that keep their value from run to run
    constants: tuple[Array | None, ...]  # by tensor index, and None at the end, which index -1 reads
    makers: Mapping[int, int]  # tensor -> the operator that makes it
    kept: tuple[int, ...]  # tensors that a run holds to its end: the outputs, and unread results
    folding: Certain  # values of computed tensors that do not change between runs
    promises: Mapping[int, Exactness]  # tensor -> its promise, relative to the graph's inputs
    limits: Limits
    cost: PlanCost
    program: Subgraphs  # the other subgraphs, bound if they are called

    @property
    def inputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's inputs."""
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        """Tensor indices of the graph's outputs."""
        return self.graph.outputs


def check_order(graph: GraphView, operands: Sequence[Operand]) -> None:
    """Refuse a graph in which a tensor is read before it is made."""
    available = {o.index for o in operands if o.is_constant or o.is_variable} | set(graph.inputs)
    for op in graph.ops:
        for tensor in op.inputs:
            if tensor >= 0 and tensor not in available:
                raise ModelError(
                    "is read before it is made", index=op.index, tensor=operands[tensor].name or f"#{tensor}"
                )
        available.update(op.outputs)
    for tensor in graph.outputs:
        if tensor not in available:
            raise ModelError("graph output is never made", tensor=operands[tensor].name or f"#{tensor}")


def known_at_start(graph: GraphView, operands: Sequence[Operand]) -> list[bool]:
    """Return, by tensor, whether its shape is known before any operator has run."""
    known = [o.is_constant or o.is_variable for o in operands]
    for tensor in graph.inputs:
        known[tensor] = True
    return known


def keep_results(graph: GraphView) -> tuple[int, ...]:
    """Return tensors that a run holds to its end: the graph's outputs, then unread results.

    Source: LiteRT 2.3 arena_planner.cc ArenaPlanner::PlanAllocations, which releases a tensor after its last reader.
    """
    return tuple(dict.fromkeys((*graph.outputs, *(t for t in graph.computed if not graph.readers(t)))))


def last_uses(graph: GraphView, also: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Return, for every operator, the tensors with their last use there that are not kept.

    `also` has one more tensor for some operators.
    """
    kept = set(keep_results(graph))
    last: dict[int, int] = {}
    for op in graph.ops:
        for tensor in (*op.inputs, *op.outputs, also.get(op.index, -1)):
            if tensor >= 0 and tensor not in kept:
                last[tensor] = op.index
    uses: list[list[int]] = [[] for _ in graph.ops]
    for tensor, index in last.items():
        uses[index].append(tensor)
    return [tuple(tensors) for tensors in uses]


def promises_of(steps: Iterable[Step], variables: Collection[int]) -> Mapping[int, Exactness]:
    """Return, by tensor, the promise of every result of these steps. Inputs and constants are exact and left out.

    A step that reaches beyond its operands is assumed to read state from any other such step.
    """
    steps = tuple(steps)
    promises: dict[int, Exactness] = {}
    beyond: Exactness = EXACT
    for _ in range(2):  # once more for variables that carry values between runs
        for step in steps:
            sources = [promises[tensor] for tensor in step.inputs if tensor in promises]
            if step.kernel.session:
                sources.append(beyond)
            promise = step.promise.after(sources)
            if step.kernel.session:
                beyond = max(beyond, promise, key=lambda known: known.strength)
            promises.update(dict.fromkeys(step.outputs, promise))
            promises.update(dict.fromkeys(set(step.inputs) & set(variables), promise))
    return promises


#: Beginnings of NumPy's messages for an array that is too large for any machine.
_TOO_LARGE = ("array is too big", "Maximum allowed dimension exceeded", "maximum supported dimension")
#: Maximum number of dimensions of an array.
MOST_DIMENSIONS = 64
#: Maximum bytes of an array, computed without its dimensions of 0.
_MOST_BYTES = 2**62


class MemoryBudget:
    """Bytes that are alive while the steps of a plan are followed, counted tensor by tensor against a limit.

    `base` is held by others meanwhile. `peak` is the largest count so far; `kept` is the size of all tensors together,
    and `beside` the most memory besides tensors. None of them includes the base.
    """

    def __init__(self, limit: int, base: int = 0) -> None:
        self.limit, self.base = limit, base
        self.peak = self.total = self.kept = self.beside = 0
        self._alive: dict[int, int] = {}

    @property
    def room(self) -> int:
        """Bytes that are left."""
        return self.limit - self.base - self.total

    def hold(self, operand: Operand, shape: Shape, place: str = "") -> None:
        """Count a tensor of that shape as alive from here on; raise a LimitError if that is too much."""
        self.release([operand.index])
        size = self._alive[operand.index] = size_of(operand, shape)
        self.total += size
        self.kept += size
        self.peak = max(self.peak, self.total)
        if self.room < 0:
            self._refuse(0, place, f"{operand.name or f'#{operand.index}'!r} of shape {list(shape)}")

    def check(self, size: int, place: str, what: str) -> None:
        """Count `size` bytes more temporarily."""
        self.peak, self.beside = max(self.peak, self.total + size), max(self.beside, size)
        if size > self.room:
            self._refuse(size, place, what)

    def _refuse(self, size: int, place: str, what: str) -> NoReturn:
        raise beyond(place, self.base + self.total + size, self.limit, what)

    def release(self, tensors: Iterable[int]) -> None:
        """Release tensors that are no longer read."""
        for tensor in tensors:
            self.total -= self._alive.pop(tensor, 0)


def beyond(place: str, needed: int, limit: int, what: str) -> LimitError:
    """Return the error for exceeding the memory limit, caused by `what`."""
    return LimitError(
        f"{place}memory of {needed} bytes, more than the limit of {limit} bytes, would be taken with {what}; "
        "raise memory_limit (--memory-limit) to allow it"
    )


def is_beyond_memory(error: Exception) -> bool:
    """Return whether NumPy could not create an array because of its size."""
    return isinstance(error, MemoryError) or (isinstance(error, ValueError) and str(error).startswith(_TOO_LARGE))


def size_of(operand: Operand, shape: Shape) -> int:
    """Return the bytes of the array for a tensor of that shape; raise if no array can have it."""
    name, dtype = operand.name or f"#{operand.index}", CARRIER[operand.type]
    if any(extent < 0 for extent in shape):
        raise ModelError("a dimension is negative", tensor=name, got=list(shape))
    if len(shape) > MOST_DIMENSIONS:
        raise LimitError(f"tensor {name!r}: {len(shape)} dimensions, beyond the limit of {MOST_DIMENSIONS}")
    if math.prod(max(extent, 1) for extent in shape) * dtype.itemsize > _MOST_BYTES:
        raise LimitError(f"tensor {name!r}: no array can have the shape {list(shape)}")
    return math.prod(shape) * dtype.itemsize


def sizes_of(outputs: Sequence[Operand], shapes: Sequence[Shape | None]) -> int:
    """Return the bytes of an operator's outputs, as far as their shapes are known."""
    return sum(size_of(o, shape) for o, shape in zip(outputs, shapes, strict=True) if shape is not None)


class Footprint:
    """Bytes of the arrays that were found so far, each counted once."""

    def __init__(self) -> None:
        self.bytes = 0
        self._seen: set[int] = set()
        self._held: list[Any] = []  # so that no number in `_seen` is reused by another object

    def add(self, *values: Any) -> None:
        """Count the arrays that are reachable from `values` by fields, elements and closures."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if isinstance(value, np.ndarray):
                while isinstance(value.base, np.ndarray):  # then its base is None, or another owner: the file
                    value = value.base
            elif not isinstance(value, (tuple, list, Mapping, FunctionType, partial)) and not _fields(value.__class__):
                continue
            if id(value) in self._seen:
                continue
            self._seen.add(id(value))
            self._held.append(value)
            if isinstance(value, np.ndarray):
                self.bytes += value.nbytes if value.base is None else 0
            else:
                waiting.extend(_parts(value))


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """Return the names of a data class's fields; None for other types."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if isinstance(value, partial):
        return (value.func, *value.args, *value.keywords.values())
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, (tuple, list)):
        return value
    return [getattr(value, name) for name in _fields(value.__class__) or ()]


@dataclass(frozen=True, slots=True, eq=False)
class Called:
    """The inputs and results of a subgraph's latest call, by tensor index, and all its tensors at that time."""

    operands: tuple[Operand, ...]
    values: Mapping[int, Array]


@dataclass(slots=True, eq=False)
class Trace:
    """Kept tensors by tensor index; `makers` gives the operator that made each (none for inputs).

    `promises` are those of all results of the plan's operators, kept or not. `called` holds the subgraphs that were
    called, by index, if that was requested.
    """

    values: dict[int, Array] = field(default_factory=dict)
    makers: dict[int, int] = field(default_factory=dict)
    promises: Mapping[int, Exactness] = field(default_factory=dict)
    called: Mapping[int, Called] = field(default_factory=dict)

    def promise(self, tensor: int) -> Exactness:
        """Return how exactly a tensor equals the runtime's, given the same inputs of the graph."""
        return self.promises.get(tensor, EXACT)
