"""Run many samples, parts of models, and compile in advance.

Run a model on many samples: each with fresh variables, several at the same time.

Part of a model, run under a profile with given values; results have the original tensor indices.

Compile in advance: compile the code that a model's runs need, and keep it for all processes of this user.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

import numpy as np

from tflq.engine.api.files import Source, load
from tflq.engine.api.session import blank
from tflq.engine.interpreter import Plan, State, Trace, make_plan, run
from tflq.engine.interpreter.evaluation import admit, open_shape
from tflq.engine.interpreter.plan import Limits, current_limits
from tflq.engine.jit.code_store import code_folder
from tflq.engine.jit.compiled import Compilations, heard
from tflq.engine.kernels.kernel import Operand, Shape
from tflq.engine.profiles import Profile, by_name
from tflq.errors import InputError, OptionError, UndefinedResultError
from tflq.interrupts import LeftAlone, leavable, leave
from tflq.model.ir import GraphView, Model, OperatorView, view, with_graph
from tflq.model.surgery.cut import cut
from tflq.model.surgery.tap import with_constant
from tflq.texts import Documented, display_by
from tflq.typing import Array

T = TypeVar("T")
R = TypeVar("R")
#: Passes of innermost loops from which a run is worth a thread.
_WORTH = 1 << 20
#: One sample: an array for each input of the graph, in order; or the array if there is one input.
Sample = Any


def run_many(
    model: Source | Model | str | os.PathLike[str],
    inputs: Iterable[Sample],
    *,
    profile: str | Profile = "litert-ref",
    threads: int | None = None,
    limits: Limits | None = None,
) -> list[list[Array]]:
    """Return the outputs of `model` for every sample, in the order of the samples and of the graph's outputs.

    Variables begin with their first values for each sample. Inputs may have other shapes than in the file, as after
    `resize_tensor_input`: operators are bound once for each combination of shapes.

    Args:
        model: A `.tflite` file, the bytes of one, or a Model.
        inputs: Samples, each a sequence of arrays, one for each input of the graph; or an array for the only input.
        profile: The arithmetic: a name or a Profile.
        threads: The number of samples that run at the same time; results do not depend on it. None: one for each
            processor, or one if a sample takes less than about a tenth of a millisecond.
        limits: The limits on memory and work, for each sample.

    Raises:
        InputError: A sample does not have an array for every input, or has one that does not fit.
        UnsupportedError, ModelError, LimitError: See Interpreter.allocate_tensors and invoke.

    Example:
        >>> samples = np.zeros((3, 1, 8, 8, 1), np.int8)
        >>> results = tflq.run_many("golden/models/digits_mobilenet_int8.tflite", samples)
        >>> len(results), results[0][0].shape
        (3, (1, 10))
    """
    if threads is not None and threads < 1:
        raise OptionError("is too small", name="threads", expected="1 or more", got=threads)
    read = load(model)
    outputs, fed = view(read).outputs, (_inputs_of(read, k, sample) for k, sample in enumerate(inputs))
    traces = run_each(read, by_name(profile), fed, threads=threads, limits=limits)
    return [[trace.values[tensor] for tensor in outputs] for trace in traces]


def run_each(
    model: Model,
    profile: Profile,
    samples: Iterable[Mapping[int, Array]],
    keeps_all: Callable[[int], bool] = lambda number: False,
    threads: int | None = None,
    limits: Limits | None = None,
) -> Iterator[Trace]:
    """Yield the traces of all samples, by tensor, in order; see `run_many`. All tensors are in those that `keeps_all`.

    Arrays of a trace belong to the caller.
    """
    batch, stream = _Batch(model, profile, limits), iter(samples)
    first = list(islice(stream, 2))
    if len(first) < 2:
        threads = 1
    chosen = batch.threads(first[0]) if threads is None else threads
    numbered = enumerate(chain(first, stream))
    yield from in_threads(lambda one: batch.run(one[1], keep_all=keeps_all(one[0])), numbered, chosen)


def processors() -> int:
    """Return the number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


#: Seconds for which threads are waited for at the end: longer than pieces of work take.
_PATIENCE = 1.5


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield the results of all items in order; at most `threads` are computed at a time, and a few wait to be taken.

    The first error of an item, in order, or an interruption ends it: no further items begin, and work that goes on ends
    at its next checkpoint.
    """
    if threads == 1:
        yield from map(work, items)
        return
    tasks: SimpleQueue[tuple[Future[R], T] | None] = SimpleQueue()
    workers = [threading.Thread(target=_serve, args=(work, tasks), name="tflq", daemon=True) for _ in range(threads)]
    waiting: deque[Future[R]] = deque()
    try:
        for worker in workers:
            worker.start()
        for item in items:
            waiting.append(Future())
            tasks.put((waiting[-1], item))
            if len(waiting) >= 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        with suppress(Empty):
            while True:
                tasks.get_nowait()
        for _ in workers:
            tasks.put(None)
        if waiting:
            leave(workers)
        deadline = monotonic() + _PATIENCE
        for worker in workers:
            worker.join(max(0.0, deadline - monotonic()))


def _serve(work: Callable[[T], R], tasks: SimpleQueue[tuple[Future[R], T] | None]) -> None:
    with leavable():
        while (task := tasks.get()) is not None:
            future, item = task
            try:
                future.set_result(work(item))
            except LeftAlone:
                raise
            except BaseException as error:
                future.set_exception(error)


class _Batch:
    """A model with the plans of its samples, each made once, and states that belong to one thread."""

    def __init__(self, model: Model, profile: Profile, limits: Limits | None) -> None:
        self._model, self._profile, self._limits = model, profile, limits
        self._plans: dict[tuple[tuple[int, Shape], ...], Plan] = {}
        self._making, self._own = threading.Lock(), threading.local()

    def threads(self, inputs: Mapping[int, Array]) -> int:
        """Return how many threads are worth while for samples like this one."""
        return processors() if self._plan(inputs).cost.work >= _WORTH else 1

    def run(self, inputs: Mapping[int, Array], *, keep_all: bool) -> Trace:
        """Return the trace of one sample."""
        plan = self._plan(inputs)
        if any(step.kernel.session for step in plan.steps):  # called subgraphs are planned during the run
            with self._making:
                return run(plan, inputs, keep_all=keep_all, copy_inputs=True)
        if keep_all:
            return run(plan, inputs, keep_all=True, copy_inputs=True)
        trace = run(plan, inputs, self._state(plan))
        return replace(trace, values={tensor: value.copy() for tensor, value in trace.values.items()})

    def _state(self, plan: Plan) -> State:
        """Return a state of this thread without variables; its routine is kept."""
        states: dict[int, State] = self._own.__dict__.setdefault("states", {})
        before = states.get(id(plan), State())
        if not before.routine or plan.variables:
            before = State(bound=before.bound, known=before.known, routine=before.routine)
        states[id(plan)] = before
        return before

    def _plan(self, inputs: Mapping[int, Array]) -> Plan:
        shapes = tuple((tensor, value.shape) for tensor, value in inputs.items())
        with self._making:
            if shapes not in self._plans:
                plan = make_plan(self._model, self._profile, input_shapes=dict(shapes), limits=self._limits)
                self._plans[shapes] = plan
            return self._plans[shapes]


def _inputs_of(model: Model, number: int, sample: Sample) -> dict[int, Array]:
    """Return a sample's arrays by tensor."""
    graph = view(model)
    values = [sample] if hasattr(sample, "dtype") else list(sample)
    if len(values) != len(graph.inputs):
        raise InputError("number of arrays", name=f"sample {number}", expected=len(graph.inputs), got=len(values))
    inputs = {}
    for tensor, value in zip(graph.inputs, values, strict=True):
        spec = graph.tensors[tensor]
        shape = open_shape(spec)
        rank = None if shape is None else (-1,) * len(shape)
        inputs[tensor] = admit(value, spec.type, rank, f"sample {number}, {spec.name or f'#{tensor}'}")
    return inputs


#: Plans that a part keeps: few, since each may hold prepared constants.
_KEPT = 4


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some operators of a model, cut out, with the values of their inputs.

    `tensors[i]` is the original index of tensor i of `model`. `inputs` have the index in `model`. `got` are the known
    results of a device or a runtime, by the original index. So are `variables`, their initial values if they differ
    from the model's. If `runs` is a list, it collects plan and inputs of every run. `plans` are the last plans, which
    parts that differ only in values share.
    """

    operators: tuple[int, ...]  # original indices, in order of execution
    model: Model
    tensors: tuple[int, ...]
    inputs: Mapping[int, Array] = field(default_factory=dict)
    got: Mapping[int, Array] = field(default_factory=dict)
    variables: Mapping[int, Array] = field(default_factory=dict)
    runs: list[tuple[Plan, Mapping[int, Array]]] | None = None
    plans: dict[Hashable, Plan] = field(default_factory=dict, repr=False)

    @property
    def index(self) -> int:
        """The original index of its first operator."""
        return self.operators[0]

    @property
    def graph(self) -> GraphView:
        """The view of its model."""
        return view(self.model)

    @property
    def op(self) -> OperatorView:
        """Its first operator."""
        return self.graph.op(0)

    def plan(self, profile: Profile, model: Model | None = None) -> Plan:
        """Bind its model, or a changed form of it, under a profile for the shapes of its inputs."""
        shapes, chosen = {tensor: value.shape for tensor, value in self.inputs.items()}, model or self.model
        # A kept plan keeps its model and profile alive, so their identities stay valid.
        key = id(chosen), id(profile), tuple(shapes.items()), current_limits()
        known = self.plans.pop(key) if key in self.plans else None
        self.plans[key] = known or make_plan(chosen, profile, input_shapes=shapes, is_part=True)
        for oldest in [*self.plans][:-_KEPT]:
            del self.plans[oldest]
        return self.plans[key]

    def run(self, plan: Plan) -> dict[int, Array]:
        """Return values of all tensors, including inputs."""
        return self.values(self.traced(plan, self.state(self.variables)))

    def traced(self, plan: Plan, state: State) -> Trace:
        """Run, keeping every tensor; indices are those of its own model."""
        if self.runs is not None:
            self.runs.append((plan, self.inputs))
        return run(plan, self.inputs, state, keep_all=True)

    def fixing(self, tensors: Collection[int]) -> Part:
        """Return the part with some inputs, by original index, as constants of its model."""
        model, fixed = self.model, [i for i in self.inputs if self.tensors[i] in tensors]
        for i in fixed:
            model = with_constant(model, i, self.inputs[i])
        if not fixed:
            return self
        record = view(model).record
        record = replace(record, inputs=tuple(i for i in record.inputs if i not in fixed))
        inputs = {i: value for i, value in self.inputs.items() if i not in fixed}
        return replace(self, model=with_graph(model, record), inputs=inputs)

    def values(self, trace: Trace) -> dict[int, Array]:
        """Return a trace's tensors by original index."""
        return {self.tensors[i]: value for i, value in trace.values.items()}

    def state(self, variables: Mapping[int, Array]) -> State:
        """Return a state whose variables have these values, by original index; others are at their initial ones."""
        return State(variables={i: variables[t] for i, t in enumerate(self.tensors) if t in variables})


def reads(model: Model, operators: Sequence[int]) -> tuple[int, ...]:
    """Return original indices of the tensors that some operators read from outside."""
    part, tensors = cut(model, operators)
    return tuple(tensors[i] for i in view(part).inputs)


def part_of(model: Model, operators: Sequence[int], values: Mapping[int, Array]) -> Part:
    """Return some operators of the first subgraph, with inputs from `values` by original index.

    Raises:
        InputError: A value that they need is missing.
    """
    part, tensors = cut(model, operators)
    needed = view(part).inputs
    missing = sorted(tensors[i] for i in needed if tensors[i] not in values)
    if missing:
        raise InputError(f"tensors that are neither in the dump nor can be computed are needed: {missing}")
    inputs = {i: values[tensors[i]] for i in needed}
    return Part(tuple(sorted(set(operators))), part, tensors, inputs)


#: Number of runs of each plan: the first without a routine, the second bound to arrays.
_RUNS = 2


@display_by("models:warm_report", "warm_document")
@dataclass(frozen=True, slots=True)
class Warmed(Documented):
    """The result of compilation: numbers of models and functions (by argument types), seconds, and the folder."""

    models: int
    functions: int
    seconds: float
    folder: str


def warm(
    models: Iterable[Source | Model | str | os.PathLike[str]],
    profile: str | Profile = "litert-ref",
    tell: Callable[[Compilations], None] | None = None,
) -> Warmed:
    """Run each model on random inputs, so that everything it needs is compiled and kept.

    `tell` is called when the compilation of a function begins or ends.

    Raises:
        UnsupportedError, ModelError, LimitError: See Interpreter.allocate_tensors and invoke.

    Example:
        >>> tflq.warm(["golden/models/digits_mobilenet_int8.tflite"]).models
        1
    """
    chosen, count = by_name(profile), 0
    with heard(tell) as compilations:
        for model in models:
            plan, state = make_plan(load(model), chosen), State()
            for _ in range(_RUNS):
                try:
                    run(plan, _inputs(plan), state)
                except UndefinedResultError:  # these inputs have no defined result; others may
                    continue
            count += 1
    return Warmed(count, compilations.functions, compilations.seconds, str(code_folder().path))


def _inputs(plan: Plan) -> Mapping[int, Array]:
    random = np.random.default_rng(0)
    return {tensor: _sample(random, plan.operands[tensor]) for tensor in plan.inputs}


def _sample(random: np.random.Generator, operand: Operand) -> Array:
    """Return reals around 0, or codes; zeros for operands that may be an index or a length."""
    value = blank(operand.type, operand.shape)
    if value.dtype.kind == "f":
        value[...] = random.standard_normal(value.shape)
    elif value.dtype.kind in "iu" and operand.is_quantized:
        span = np.iinfo(value.dtype)
        value[...] = random.integers(max(span.min, -(2**15)), min(span.max, 2**15), value.shape)
    return value
