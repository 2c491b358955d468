"""Float tails: the last operators in float, from the cheapest cut that wins back what one shared scale loses.

Where a tensor holds parts of different meanings, such as boxes in pixels and scores, one scale cannot suit all of them.
The operators behind the last one with weights cost next to nothing in float. Suffixes of them are built and judged on
held-back samples; the shortest one that is nearly as good as all of them is taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tflq.comparison.inspection.operators import macs_of
from tflq.engine.kernels.facts import OPERATORS
from tflq.errors import CalibrationError, TflqError
from tflq.model.flatbuf.writer import file_size
from tflq.model.ir import GraphView, Model, OperatorView, TensorType, view
from tflq.model.surgery.cut import operators_named
from tflq.quantization.build.build import build
from tflq.quantization.build.task import Task
from tflq.quantization.calibration.quarters import parted
from tflq.quantization.judge.journal import Journal, entry_key
from tflq.quantization.judge.scoring import judged, reading_for
from tflq.quantization.recipe.recipe import AUTO, NO_TAIL, TYPES, Spared
from tflq.quantization.recipe.stamp import finish
from tflq.quantization.scheme.float_graph import prepare
from tflq.quantization.scheme.light import tail_region
from tflq.quantization.splitting import split_outputs

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
        counts = [macs_of(op) for op in view(task.floats.model).ops]
        self._shares = [count / max(1, sum(counts)) for count in counts]

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
            key = entry_key(f"tail {name}", task.methods)
            entry: Any = self._journal.get(key)
            if entry is None:
                found = self._built(name, task, operators)
                entry = {} if found is None else asdict(found)
                self._journal.note(key, entry)
            if entry:
                self._tried[name] = Tail(**entry)
        return self._tried.get(name)

    def _built(self, name: str, task: Task, operators: frozenset[int]) -> Tail | None:
        try:
            built = build(replace(task, samples=self._fitting, progress=None))
            score = judged(task, built, self._judging)
        except CalibrationError:
            raise
        except TflqError:
            return None
        first = min(operators, default=-1)
        op = task.floats.graph.op(first).name if operators else ""
        origin = task.floats.origins[first] if operators else -1
        share = sum(self._shares[i] for i in operators)
        size = file_size(finish(built.integer.model, task.recipe))
        loss = float(score.losses.mean())
        return Tail(name, origin, op, len(operators), share, loss, score.ratios, size)
