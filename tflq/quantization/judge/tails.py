"""Float tails, and streamed models from step to step.

Float tails: the last operators in float, from the cheapest cut that wins back what one shared scale loses.

Where a tensor holds parts of different meanings, such as boxes in pixels and scores, one scale cannot suit all of them.
The operators behind the last one with weights cost next to nothing in float. Suffixes of them are built and judged on
held-back samples; the shortest one that is nearly as good as all of them is taken.

A streaming model after its quantization, over steps in a row: compared from its own states, and verified.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tflq.comparison.verification.verifying import verify
from tflq.engine.kernels.facts import OPERATORS
from tflq.engine.runtimes import Invocation
from tflq.errors import RuntimeFailed, RuntimeMissing, TflqError, UnsupportedError
from tflq.model.ir import GraphView, Model, OperatorView, TensorType, input_names, output_names, rooted, view
from tflq.model.surgery.cut import operators_named
from tflq.quantization.build.build import Task, build
from tflq.quantization.frontier import Sample, executor
from tflq.quantization.judge.contest import judged, reading_for
from tflq.quantization.judge.detections import Fidelity
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.judge.runtimes import RUNTIMES, RuntimeCheck
from tflq.quantization.judge.trials import if_built, shares_of, size_of
from tflq.quantization.params import codes_of, real
from tflq.quantization.quarters import parted
from tflq.quantization.recipe import AUTO, NO_TAIL, TYPES, Spared
from tflq.quantization.scheme.float_graph import prepare
from tflq.quantization.scheme.scheme import tail_region
from tflq.quantization.source import split_outputs
from tflq.quantization.streams import Stream

#: A tail must reduce the loss by this factor to be worth it: where parts share a scale, and where outputs are apart,
#: whose types then change. A shorter tail may lose this many times as much as the longest.
_WORTH, _WORTH_APART, _NEARLY = 1.5, 2.0, 1.05
#: Names of treatments: nothing, the tail in 16 bits, parts as outputs of their own.
NONE, WIDE, APART = "none", "16-bit tail", "outputs apart"
#: The reason why operators of a tail stay in float.
REASON = "float tail: behind it, one scale for boxes, scores or other parts would lose them"


@dataclass(frozen=True, slots=True)
class Tail:
    """One way to treat the outputs: `name`, the first of `operators` operators, and the results.

    `operators` are in float, or in 16 bits. `loss` is the sum of the errors of all parts in units of their signal, and
    `ratios` are those of the parts, dB. `size` is in bytes; `share` that of the multiply-accumulates in float.
    """

    name: str
    first: int  # index in the source, -1 if none
    op: str
    operators: int
    share: float
    loss: float
    ratios: Mapping[str, float]
    size: int


@dataclass(frozen=True, slots=True)
class Tails:
    """The treatments that were tried, in the order of the trials; `taken` is the name of the one that was taken."""

    tried: tuple[Tail, ...]
    taken: str
    operators: frozenset[int] = frozenset()  # of the float model, that stay in float

    @property
    def best(self) -> Tail:
        """The treatment that was taken."""
        return next(tail for tail in self.tried if tail.name == self.taken)


def find_tails(source: Model, task: Task, journal: Journal | None = None) -> Tails | None:
    """Try float tails and their alternatives, and choose; None if the outputs hold nothing that needs any.

    They are judged by the recipe's first candidate on held-back samples. A tail is not tried if the recipe asks for
    integer outputs or split ones, forbids it or is portable, or if activations stay float anyway.
    """
    recipe = task.recipe
    integers = recipe.output_type not in (None, TensorType.FLOAT32)
    if recipe.float_tail == NO_TAIL or recipe.portable or TYPES[recipe.mode].data is None:
        return None
    if recipe.float_tail != AUTO:
        return None if integers else _ask_for(source, task)
    reading = reading_for(task)
    if recipe.split_outputs or reading is None or not (reading.layout.is_joint or reading.has_boxes):
        return None
    trials = _Trials(source, task, journal or Journal(None, {}))
    region = tail_region(task.floats)
    if not region or integers:
        return None
    starts = [index for index in sorted(region) if not _moves(task.floats.graph.op(index))]
    if not starts:
        return None
    none, whole = trials.none(), trials.tail(region, starts[0])
    worth = _WORTH if reading.layout.is_joint else _WORTH_APART
    if none is None or whole is None or none.loss < worth * whole.loss:
        return trials.taking(NONE, frozenset())
    low, high = 0, len(starts)  # the suffix from `low` is good enough
    while high - low > 1:
        middle = (low + high) // 2
        trial = trials.tail(region, starts[middle])
        is_good = trial is not None and trial.loss <= _NEARLY * whole.loss
        low, high = (middle, high) if is_good else (low, middle)
    trials.alternatives(region, starts[low])
    return trials.taking(trials.named(starts[low]), _suffix(region, starts[low]))


def _ask_for(source: Model, task: Task) -> Tails:
    """Return the tail that the recipe names, without trials."""
    named = operators_named(source, (task.recipe.float_tail,))
    first = {i for i, origin in enumerate(task.floats.origins) if origin in named}
    return Tails((), "", behind(task.floats.graph, first))


def behind(graph: GraphView, first: Collection[int]) -> frozenset[int]:
    """Return these operators, by index, and all that depend on them."""
    chosen, reached = set(first), {t for index in first for t in graph.op(index).outputs}
    for op in graph.ops:
        if reached.intersection(op.inputs):
            chosen.add(op.index)
            reached.update(op.outputs)
    return frozenset(chosen)


def with_tail(task: Task, operators: frozenset[int]) -> Task:
    """Return the task with a float tail; all outputs are float32 then."""
    kept = {**task.kept_float, **dict.fromkeys(operators, REASON)}
    return replace(task, kept_float=kept, recipe=replace(task.recipe, output_type=TensorType.FLOAT32))


def _moves(op: OperatorView) -> bool:
    fact = OPERATORS.get(op.name)
    return fact is not None and fact.moves == (0,)


def _suffix(region: frozenset[int], first: int) -> frozenset[int]:
    return frozenset(index for index in region if index >= first)


class _Trials:
    """Models with different treatments of the outputs, built by one candidate, and their results."""

    def __init__(self, source: Model, task: Task, journal: Journal) -> None:
        self._source, self._task, self._journal = source, task, journal
        self._fitting, self._judging = parted(task.samples)
        self._tried: dict[str, Tail] = {}
        self._shares = shares_of(task.floats)

    def none(self) -> Tail | None:
        """Return the result of no treatment."""
        return self._trial(NONE, self._task, frozenset())

    def tail(self, region: frozenset[int], first: int) -> Tail | None:
        """Return the result of a float tail."""
        operators = _suffix(region, first)
        return self._trial(self.named(first), with_tail(self._task, operators), operators)

    def named(self, first: int) -> str:
        """Return the name of the float tail from an operator on, by its index in the source."""
        return f"float tail from {self._task.floats.origins[first]}"

    def alternatives(self, region: frozenset[int], first: int) -> None:
        """Try the same tail in 16 bits, and outputs apart."""
        operators = _suffix(region, first)
        if self._task.recipe.budget is None and self._task.recipe.spared is Spared.INT16X8:
            self._trial(WIDE, replace(self._task, wide=operators), operators)
        try:
            apart = prepare(split_outputs(self._source))
        except TflqError:
            return
        if len(apart.origins) < len(self._task.floats.origins):
            self._trial(APART, Task(apart, self._task.samples, self._task.recipe, self._task.methods), frozenset())

    def taking(self, name: str, operators: frozenset[int]) -> Tails | None:
        """Return all trials, and the one that is taken."""
        return Tails(tuple(self._tried.values()), name, operators) if name in self._tried else None

    def _trial(self, name: str, task: Task, operators: frozenset[int]) -> Tail | None:
        """Return the result of a treatment, computed or read from the journal; None if it cannot be built."""
        if name not in self._tried:
            self._task.tell("float tails", len(self._tried), 0)
            make = partial(if_built, partial(self._built, name, task, operators))
            found = self._journal.once(entry_key(f"tail {name}", task.methods), Tail, make)
            if found is not None:
                self._tried[name] = found
        return self._tried.get(name)

    def _built(self, name: str, task: Task, operators: frozenset[int]) -> Tail:
        built = build(replace(task, samples=self._fitting, progress=None))
        score = judged(task, built, self._judging)
        first = min(operators, default=-1)
        op = task.floats.graph.op(first).name if operators else ""
        origin = task.floats.origins[first] if operators else -1
        share = sum(self._shares[i] for i in operators)
        loss = float(score.losses.mean())
        return Tail(name, origin, op, len(operators), share, loss, score.ratios, size_of(built, task))


#: Steps in a row that the check runs.
STEPS = 20


@dataclass(frozen=True, slots=True)
class Streamed:
    """Steps in a row, of how many sequences, number of variables, and the worst output's ratio over all steps, dB."""

    steps: int
    sequences: int
    variables: int
    sqnr: float


def compare_steps(stream: Stream, made: Model, sequences: Sequence[Sequence[Sample]], profile: str) -> Streamed:
    """Run both models over all steps, in each sequence from the first values of their own variables."""
    step = rooted(made, stream.root)
    wide, narrow = view(stream.step), view(step)
    names = [input_names(stream.step), output_names(stream.step)]
    if stream.root.signature is None:
        names = [tuple(map(str, range(len(edge)))) for edge in names]
    outputs = [Fidelity(name, "", -1) for name in names[1]]
    for sample, begins in ((sample, not k) for steps in sequences for k, sample in enumerate(steps)):
        if begins:
            floats, integers = stream.begin(stream.model, "litert-ref"), stream.begin(made, executor(made, profile))
        given = dict(zip(names[0], (sample[t] for t in wide.inputs), strict=True))
        pairs = zip(names[0], wide.inputs, narrow.inputs, strict=True)
        codes = {name: codes_of(narrow.tensors[new], sample[old]) for name, old, new in pairs}
        one = floats.run(Invocation(stream.root.signature, given)).outputs
        other = integers.run(Invocation(stream.root.signature, codes)).outputs
        for sums, tensor in zip(outputs, narrow.outputs, strict=True):
            sums.add(one[sums.name], real(narrow.tensors[tensor], other[sums.name]))
    worst = min((sums.sqnr for sums in outputs), default=math.inf)
    return Streamed(sum(map(len, sequences)), len(sequences), len(stream.variables), worst)


def check_steps(model: Model) -> RuntimeCheck:
    """Verify a model with variables over steps in a row, operator by operator."""
    failure: TflqError | None = None
    for runtime in RUNTIMES:
        try:
            return RuntimeCheck(verify(model, runtime, samples=STEPS))
        except RuntimeMissing as error:
            return RuntimeCheck(None, error)
        except (RuntimeFailed, UnsupportedError) as error:
            failure = error
    return RuntimeCheck(None, failure)
