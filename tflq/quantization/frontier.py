"""Many samples run through one model, operator by operator or whole.

Change a model with a batch of one so that it takes any number of samples along axis 0.

Constants in the file fix the batch if they hold shapes: RESHAPE to [1, 49, 3, 16]. Here the batch becomes -1. A shape
that lost the batch on the way, such as [49, 48] computed from [1, 49, 3, 16], gets it back in front: [-1, 49, 48].
FULLY_CONNECTED then keeps its dimensions. The caller must check that samples together give the same bits as samples
apart: axes count from the front, and operators may look at all rows.

Run many samples through one model, several at a time if that changes no bit.

Arrays of many samples, in memory as far as possible and in temporary files beyond that.

A model run operator by operator, each on all samples before the next one.

Every operator runs once per sample, however often the tensors in between are read on the way. Operators that have not
run yet can be changed in between. The frontier is the set of tensors that the remaining operators will read.

Run work whose inputs are known up front in several processes.

A process begins as a copy of this one (fork), so work can read everything in this process's memory. Only its result is
sent back. No result depends on the number of processes.

Values that the candidates of a recipe have in common, computed once.

Progress reports of work.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from multiprocessing.queues import SimpleQueue
from multiprocessing.reduction import ForkingPickler
from types import MappingProxyType, TracebackType
from typing import IO, Any, TypeAlias, TypeVar, cast

import numpy as np

from tflq.engine.api.many import processors
from tflq.engine.interpreter import Plan, State, Step, make_plan, run
from tflq.engine.interpreter.evaluation import variable
from tflq.engine.interpreter.execution import run_step
from tflq.engine.interpreter.plan import Bindings
from tflq.engine.profiles import by_name
from tflq.errors import ModelError, OptionError, TflqError
from tflq.interrupts import Progress
from tflq.model.ir import Buffer, Model, Operator, OperatorView, Quantization, TensorType, view, with_graph
from tflq.model.surgery.cut import upstream
from tflq.typing import Array


def batchable(model: Model) -> Model:
    """Return the model with changed shape constants and options; tensors and operators keep their numbers."""
    graph = view(model)
    tensors, buffers, operators = list(graph.tensors), list(model.buffers), list[Operator]()
    for operator in graph.ops:
        name = operator.builtin
        made = operator.output().shape if operator.outputs else ()
        if name == "RESHAPE" and _is_fixed(operator):
            shape = (-1, *(made[1:] if made[:1] == (1,) else made))
            buffers.append(Buffer(np.array(shape, np.int32).view(np.uint8)))
            tensors.append(replace(graph.tensors[operator.inputs[1]], shape=(len(shape),), buffer=len(buffers) - 1))
            operators.append(replace(operator.record, inputs=(operator.inputs[0], len(tensors) - 1)))
        elif name == "FULLY_CONNECTED" and made[:1] != (1,) and operator.record.options is not None:
            options = operator.record.options
            options = replace(options, fields={**options.fields, "keep_num_dims": True})
            operators.append(replace(operator.record, options=options))
        else:
            operators.append(operator.record)
    changed = replace(graph.record, tensors=tuple(tensors), operators=tuple(operators))
    return replace(with_graph(model, changed), buffers=tuple(buffers))


def _is_fixed(operator: OperatorView) -> bool:
    """Return whether a RESHAPE takes computed values to a shape that the file holds."""
    if len(operator.inputs) != 2 or -1 in operator.inputs:
        return False
    graph, (data, shape) = operator.graph, operator.inputs
    return (
        graph.data(data) is None
        and graph.data(shape) is not None
        and graph.tensors[shape].type == TensorType.INT32
        and 0 not in operator.output().shape
    )


#: The graph's inputs of one sample, by tensor index, batch dimension included.
Sample = Mapping[int, Array]

#: The number of samples that run together, and the limit on bytes of their tensors.
BATCH, BATCH_BYTES = 32, 64 << 20


class Runner:
    """A model's first subgraph, whose tensors `keep` (None: its outputs) are returned for many samples.

    Samples are joined along axis 0 if all inputs have one row there, and if two joined samples give every kept tensor
    the same bits as apart; otherwise each runs alone. Shapes in the file that fix the batch to one are no obstacle: a
    tensor without a batch dimension gets one in front. `together` is the number of samples that may run together, if it
    is known. Samples of a streaming model, which has handles of variables, are steps in a row from its first values.
    """

    def __init__(
        self,
        model: Model,
        keep: Collection[int] | None = None,
        profile: str = "litert-ref",
        together: int | None = None,
    ) -> None:
        graph = view(model)
        self.kept = tuple(dict.fromkeys(graph.outputs if keep is None else keep))
        outputs = tuple(t for t in self.kept if graph.maker(t) is not None)
        operators = tuple(op.record for op in needed_operators(model, self.kept))
        tapped = replace(graph.record, outputs=outputs, operators=operators)
        self._model = replace(with_graph(model, tapped), signature_defs=None)
        self._batchable = batchable(self._model)
        self._is_stream = any(code.name == "VAR_HANDLE" for code in model.operator_codes)
        self._profile, self._known = by_name(profile), 1 if self._is_stream else together
        self._plans: dict[tuple[tuple[int, ...], ...], tuple[Plan, State]] = {}

    def run(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """Return the kept tensors of the samples in order, by tensor index: one or more samples at a time along axis 0.

        Samples that run alone keep the shapes of the model. All have the same shapes.
        """
        return (values for _, values in self._batches(samples, batch))

    def each(self, samples: Iterable[Sample], batch: int = BATCH) -> Iterator[dict[int, Array]]:
        """Yield the kept tensors like `run`, one sample at a time."""
        for count, values in self._batches(samples, batch):
            for row in range(count):
                yield values if count == 1 else {t: self._row(t, v, row) for t, v in values.items()}

    def one(self, sample: Sample) -> dict[int, Array]:
        """Return the kept tensors of one sample."""
        self._restart()
        return self._kept(self._model, sample)

    def _restart(self) -> None:
        if self._is_stream:
            self._plans = {shapes: (plan, State(bound=state.bound)) for shapes, (plan, state) in self._plans.items()}

    def _row(self, tensor: int, values: Array, row: int) -> Array:
        """Return one of the samples that ran together, in the shape that it has alone."""
        rank = len(view(self._model).tensors[tensor].shape)
        return values[row] if 0 < rank < values.ndim else values[row : row + 1]

    def _kept(self, model: Model, sample: Sample) -> dict[int, Array]:
        """Return the kept tensors of a sample, or of several joined ones, from the model or its batched form."""
        shapes = tuple(sample[t].shape for t in view(self._model).inputs)
        if shapes not in self._plans:
            by_tensor = dict(zip(view(self._model).inputs, shapes, strict=True))
            self._plans[shapes] = make_plan(model, self._profile, input_shapes=by_tensor), State()
        plan, state = self._plans[shapes]
        if plan.variables:
            state = State(bound=state.bound)  # variables are reset for every sample
        values = run(plan, sample, state).values
        for tensor in self.kept:
            if tensor not in sample and tensor not in values:
                values[tensor] = self._constant(plan, tensor)
        return {t: sample[t] if t in sample else values[t] for t in self.kept}

    def _constant(self, plan: Plan, tensor: int) -> Array:
        value = plan.constants[tensor]
        if value is None:
            raise ModelError("is never computed", tensor=plan.operands[tensor].name or f"#{tensor}")
        return value

    def _batches(self, samples: Iterable[Sample], batch: int) -> Iterator[tuple[int, dict[int, Array]]]:
        """Yield the number of samples, and their kept tensors."""
        self._restart()
        stream = iter(samples)
        waiting = list(islice(stream, 2))
        batch = self._batch(waiting, batch)
        while waiting:
            waiting.extend(islice(stream, max(0, batch - len(waiting))))
            yield min(batch, len(waiting)), self._together(waiting[:batch])
            waiting = waiting[batch:] or list(islice(stream, 1))

    def _together(self, samples: list[Sample]) -> dict[int, Array]:
        return self._kept(*((self._model, samples[0]) if len(samples) == 1 else (self._batchable, join(samples))))

    def together(self, samples: Iterable[Sample], most: int = BATCH) -> int:
        """Return how many of the samples can run together: at most `most`, as memory allows."""
        return self._batch(list(islice(samples, 2)), most)

    def _batch(self, head: list[Sample], batch: int) -> int:
        """Return how many samples run together, limited by BATCH_BYTES."""
        if self._known is not None:
            return min(batch, self._known)
        if len(head) < 2 or batch < 2 or any(x.shape[:1] != (1,) for sample in head for x in sample.values()):
            return 1
        if any(a.shape != head[1][t].shape for t, a in head[0].items()):
            return 1
        alone = [self.one(sample) for sample in head]
        try:
            pair = self._together(head)
        except TflqError:
            return 1
        if any(not _same(pair[t], v, alone[1][t]) for t, v in alone[0].items()):
            return 1
        kept = sum(v.nbytes for v in alone[0].values())
        return max(1, min(batch, BATCH_BYTES // max(1, kept), BATCH_BYTES // max(1, self._peak)))

    @property
    def _peak(self) -> int:
        """The bytes of the tensors that are alive at the same time, for a single sample."""
        return min((plan.cost.peak_memory for plan, _ in self._plans.values()), default=0)


def executor(model: Model, profile: str) -> str:
    """Return the profile, or `litert-ref` if it does not take the model.

    Only `litert-xnnpack` reads weights with block scales directly.

    Raises:
        UnsupportedError, ModelError: A profile that was learned from a device lacks an operator; nothing replaces it.
    """
    details = [t.quantization.details for t in view(model).tensors if t.quantization is not None]
    if any(d is not None and d.table == "BlockwiseQuantization" for d in details):
        profile = "litert-xnnpack"
    try:
        make_plan(model, by_name(profile))
    except TflqError:
        if by_name(profile).is_learned:
            raise
        return "litert-ref"
    return profile


def needed_operators(model: Model, kept: Collection[int]) -> tuple[OperatorView, ...]:
    """Return the operators that tensors depend on; all operators if some have effects beyond their outputs."""
    graph = view(model)
    if len(model.subgraphs) > 1 or any(t.is_variable for t in graph.tensors):
        return graph.ops
    return upstream(graph.ops, kept)


def join(samples: Sequence[Sample]) -> dict[int, Array]:
    """Return several samples as one, along axis 0; one sample as it is, scalars among it."""
    if len(samples) == 1:
        return dict(samples[0])
    return {t: np.concatenate([sample[t] for sample in samples]) for t in samples[0]}


def _same(pair: Array, first: Array, second: Array) -> bool:
    """Return whether two samples that ran together gave the same bits as apart."""
    rows = first.shape[1:] if first.shape[:1] == (1,) else first.shape
    return pair.shape == (2, *rows) and pair.tobytes() == first.tobytes() + second.tobytes()


#: Bytes that a store keeps in memory before it uses files.
MEMORY = 384 << 20


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of one array in a file."""

    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(slots=True, eq=False)
class _Rows:
    """One tensor's arrays, batch by batch: all in memory, or all in one file."""

    file: IO[bytes] | None
    arrays: list[Array | _Place] = field(default_factory=list)
    size: int = 0


class SampleStore:
    """Tensors by name, each a sequence of arrays; a tensor that does not fit in memory gets its own file.

    Files are unnamed, or deleted by the system when they are closed: they disappear with the store, even after a crash.
    Arrays from files are memory-mapped when they are read. `spilled` is the peak number of bytes in files.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._tensors: dict[object, _Rows] = {}
        self._held = self._on_disk = self.spilled = 0

    def begin(self, name: object, size: int) -> None:
        """Make room for a tensor of about `size` bytes in all its batches."""
        fits = self._held + size <= self._memory
        file = None if fits else tempfile.TemporaryFile(prefix="tflq-activations-")  # noqa: SIM115 (closed by drop)
        self._tensors[name] = _Rows(file)

    def append(self, name: object, array: Array) -> None:
        """Add the next batch of a tensor started with `begin`."""
        rows = self._tensors[name]
        rows.size += array.nbytes
        if rows.file is None:
            self._held += array.nbytes
            rows.arrays.append(array)
            return
        rows.arrays.append(_Place(rows.file.seek(0, 2), array.shape, array.dtype))
        rows.file.write(np.ascontiguousarray(array).data if array.size else b"")
        self._on_disk += array.nbytes
        self.spilled = max(self.spilled, self._on_disk)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def get(self, name: object, batch: int) -> Array:
        """Return one batch of a tensor; those in files are read-only."""
        rows = self._tensors[name]
        entry = rows.arrays[batch]
        if not isinstance(entry, _Place):
            return entry
        assert rows.file is not None  # places are in files
        rows.file.flush()
        if not all(entry.shape):
            return np.empty(entry.shape, entry.dtype)
        mapped = np.memmap(rows.file, entry.dtype, "r", entry.start, entry.shape)
        return np.asarray(mapped)

    def batches(self, name: object) -> Iterator[Array]:
        """Yield all batches of a tensor in order."""
        return (self.get(name, batch) for batch in range(len(self._tensors[name].arrays)))

    def drop(self, name: object) -> None:
        """Forget a tensor; its file is deleted."""
        rows = self._tensors.pop(name)
        if rows.file is None:
            self._held -= rows.size
        else:
            self._on_disk -= rows.size
            rows.file.close()

    def close(self) -> None:
        """Forget everything."""
        for name in tuple(self._tensors):
            self.drop(name)

    def __enter__(self) -> SampleStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


#: The shapes of a graph's inputs.
_Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ConstantTensor:
    """The replacement of a model's constant: values, and the parameters that decode them."""

    value: Array
    quantization: Quantization | None


@dataclass(frozen=True, slots=True, eq=False)
class _Samples:
    """Samples that run together, and the values that live from step to step."""

    number: int
    plan: Plan
    state: State


class Frontier:
    """The first subgraph of a model: some of its operators are done for all samples, the others have yet to run.

    `stops` are the operators before which the frontier is read; operators on which none of them depends are skipped.
    `size` samples run together. `store` holds the frontier.
    """

    def __init__(
        self,
        model: Model,
        samples: Sequence[Sample],
        stops: Collection[int],
        profile: str,
        size: int,
        store: SampleStore,
    ) -> None:
        graph = view(model)
        read = _inputs(model, stops)
        kept = sorted({*(op.index for op in needed_operators(model, read)), *stops})
        operators = tuple(graph.op(index).record for index in kept)
        model = with_graph(model, replace(graph.record, outputs=(), operators=operators))
        model = replace(model, signature_defs=None)
        model = batchable(model) if size > 1 else model
        self._place = {index: place for place, index in enumerate(kept)}
        self._read = {t for operator in operators for t in operator.inputs}
        self._store, self._done = store, 0
        self._constants: dict[int, Mapping[int, ConstantTensor]] = {}  # by step, of changed operators
        self._steps: dict[tuple[int, int], Step] = {}  # by step and plan, of changed operators
        groups = [join(samples[k : k + size]) for k in range(0, len(samples), size)]
        plans: dict[_Shapes, tuple[Plan, Bindings]] = {}
        self._batches = []
        for number, group in enumerate(groups):
            shapes = tuple(group[t].shape for t in graph.inputs)
            if shapes not in plans:
                by_tensor = dict(zip(graph.inputs, shapes, strict=True))
                plans[shapes] = make_plan(model, by_name(profile), input_shapes=by_tensor), {}
            plan, bindings = plans[shapes]
            self._batches.append(_Samples(number, plan, State(bound=bindings)))
        for tensor in graph.inputs:
            self._keep(tensor, [group[tensor] for group in groups])

    def advance(self, stop: int) -> None:
        """Run all operators before one of the stops."""
        while self._done < self._place[stop]:
            for batch in self._batches:
                for tensor, value in self._results(batch, self._done).items():
                    if (self, tensor) not in self._store:
                        self._store.begin((self, tensor), value.nbytes * len(self._batches))
                    self._store.append((self, tensor), value)
            for tensor in self._batches[0].plan.steps[self._done].last_uses:
                if (self, tensor) in self._store:
                    self._store.drop((self, tensor))
            self._done += 1

    def values(self, tensor: int) -> Iterator[Array]:
        """Yield a tensor of the frontier for all samples, one or more per array along axis 0."""
        return self._store.batches((self, tensor))

    def change(self, stop: int, constants: Mapping[int, ConstantTensor]) -> None:
        """Replace constants of a stop that has yet to run, by position."""
        self._constants[self._place[stop]] = constants

    def _results(self, batch: _Samples, place: int) -> dict[int, Array]:
        """Run one step on a batch and return the tensors that later steps read."""
        plan, constants = batch.plan, self._constants.get(place, {})
        step = self._changed(plan, place) if constants else plan.steps[place]
        values: list[Array | None] = list(plan.constants)
        for position, tensor in enumerate(step.inputs):
            if position in constants:
                values[tensor] = constants[position].value
            elif tensor in plan.variables:
                values[tensor] = variable(plan, batch.state, tensor)
            elif (self, tensor) in self._store:
                values[tensor] = self._store.get((self, tensor), batch.number)
        with np.errstate(all="ignore"):
            run_step(plan, step, batch.state, values)
        return {t: value for t in step.outputs if t in self._read and (value := values[t]) is not None}

    def _changed(self, plan: Plan, place: int) -> Step:
        """Return a step with its changed constants, bound at run time."""
        key = place, id(plan)
        if key not in self._steps:
            step, inputs = plan.steps[place], list(plan.steps[place].node.inputs)
            for position, constant in self._constants[place].items():
                operand = inputs[position]
                assert operand is not None  # it is read
                value = constant.value if operand.is_constant else None
                inputs[position] = replace(operand, value=value, quantization=constant.quantization)
            self._steps[key] = replace(step, node=replace(step.node, inputs=tuple(inputs)), prepared=None)
        return self._steps[key]

    def _keep(self, tensor: int, values: Sequence[Array]) -> None:
        if tensor in self._read:
            self._store.begin((self, tensor), sum(value.nbytes for value in values))
            for value in values:
                self._store.append((self, tensor), value)


def together(model: Model, samples: Sequence[Sample], stops: Collection[int], profile: str) -> int:
    """Return how many samples can run together without changing a bit of the tensors that the stops read."""
    return Runner(model, _inputs(model, stops), profile).together(samples)


def _inputs(model: Model, operators: Collection[int]) -> set[int]:
    """Return the tensors that operators read and that the graph computes or receives."""
    graph = view(model)
    computed = {*graph.inputs, *graph.computed}
    return {t for index in operators for t in graph.op(index).inputs if t in computed}


T = TypeVar("T")
R = TypeVar("R")
#: work(item, progress) gives the item's result.
Work: TypeAlias = "Callable[[T, Progress | None], R]"

#: Seconds between two progress messages of one worker process.
_INTERVAL = 0.5
#: The work of this process, if it is a worker, its items, and where it sends progress.
_task: tuple[Work[Any, Any], Sequence[Any], Progress | None]


def _read_only(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def _reduce(proxy: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    """Return how to pickle a read-only mapping, which pickle does not support by itself."""
    return _read_only, (dict(proxy),)


ForkingPickler.register(MappingProxyType, _reduce)


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that is not possible.

    Raises:
        OptionError: It is below 1, or above 1 on a system without fork.
    """
    if jobs < 1:
        raise OptionError(f"jobs: expected at least 1, got {jobs}")
    if jobs > 1 and "fork" not in multiprocessing.get_all_start_methods():
        raise OptionError(f"jobs: {jobs} processes need fork, which this system lacks; use 1")


def available() -> int:
    """Return the useful number of processes: the processors that this process may run on."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return 1
    return processors()


def each(work: Work[T, R], items: Sequence[T], jobs: int, progress: Progress | None) -> Generator[R, None, None]:
    """Yield the results of all items in order; at most `jobs` of them are computed at the same time.

    If a process fails or ends without a result, its work is repeated here, which raises the original error.
    """
    if jobs == 1 or len(items) < 2:
        yield from (work(item, progress) for item in items)
        return
    context = multiprocessing.get_context("fork")
    messages = context.SimpleQueue()
    others = multiprocessing.active_children()
    begun = (work, items, messages if progress else None)  # a fork inherits them; nothing is pickled
    pool = ProcessPoolExecutor(min(jobs, len(items)), context, _begin, begun)
    try:
        futures: list[Future[R]] = [pool.submit(_compute, number) for number in range(len(items))]
        for item, future in zip(items, futures, strict=True):
            while not future.done():
                wait([future], _INTERVAL if progress else None)
                while progress is not None and not messages.empty():
                    progress(*messages.get())
            yield work(item, progress) if future.exception() else future.result()
    finally:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()
        pool.shutdown(cancel_futures=True)


def _begin(work: Work[Any, Any], items: Sequence[Any], messages: SimpleQueue[Any] | None) -> None:
    """Make this process a worker."""
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    last = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        if messages is not None and time.monotonic() - last > _INTERVAL:
            last = time.monotonic()
            messages.put((what, done, total))

    _task = work, items, None if messages is None else report


def _compute(number: int) -> Any:
    work, items, progress = _task
    return work(items[number], progress)


class SharedValues:
    """Values by the inputs they were computed from, kept as long as one model is quantized.

    Keys name content: `constants` is a digest of the values of a model's constants, so candidates share equal content
    however it came about. All models of one such object differ only in their constants.
    """

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._digests: dict[int, tuple[object, bytes]] = {}  # by identity of the constants, which live as long

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key; compute it if there is none yet."""
        if key not in self._values:
            self._values[key] = make()
        return cast(T, self._values[key])

    def constants(self, values: Mapping[int, Any]) -> bytes:
        """Return a digest of a model's constants."""
        known = self._digests.get(id(values))
        if known is None:
            digest = sha256()
            for tensor in sorted(values):
                array = np.ascontiguousarray(values[tensor])
                digest.update(f"{tensor} {array.dtype} {array.shape} ".encode())
                digest.update(array.data if array.size else b"")
            known = self._digests[id(values)] = values, digest.digest()
        return known[1]


#: Number of steps into which a part of the whole is divided.
STEPS = 100


def part_of(progress: Progress | None, part: str, done: int, total: int) -> Progress | None:
    """Return the progress of part `done` of `total` equal ones, which reports to the progress of the whole."""
    if progress is None:
        return None

    def tell(what: str, steps: int, of: int) -> None:
        share = min(STEPS, STEPS * steps // of) if of else 0
        text = f"{part}: {what} {steps}" + (f" of {of}" if of else "")
        progress(text, STEPS * done + share, STEPS * total)

    return tell
