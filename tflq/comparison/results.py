"""The findings of a verification, as frozen values. `tflq.face.report` formats them.

The coverage of a verification: the compared part, the whole, and the missing parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from tflq.comparison.inspection.difference import Difference, merge
from tflq.comparison.inspection.prepared import Constants
from tflq.engine.kernels.kernel import EXACT, Exactness
from tflq.model.ir import Model, Signed, view
from tflq.model.ir.signatures import call, place_in, reach, roots
from tflq.typing import Array

NOT_WRITTEN = "the runtime never writes it"


class CompareMode(str, Enum):
    """The inputs of operators: the observed values ("isolated"), or the profile's own, end to end ("cumulative")."""

    ISOLATED = "isolated"
    CUMULATIVE = "cumulative"


class Status(str, Enum):
    """The status of an operator or a tensor."""

    EXACT = "exact"
    CLOSE = "close"  # differs by no more than was measured, or is near, for results that are promised to be close
    DIFFERS = "differs"
    NOT_COMPARED = "not compared"
    NOT_WRITTEN = "not written"  # the runtime never writes it, so that there is nothing to compare


class Verdict(str, Enum):
    """The verdict on the model."""

    SAME = "same"
    CLOSE = "close"  # not the same bits, but no difference exceeds its promise
    DIFFERS = "differs"
    EXPLAINED = "explained"  # differs exactly as the profiles of two runtimes do: each reproduces all bits of its own
    ACCEPTED = "accepted"  # differs, or was not compared, only where a baseline accepts it
    INCOMPLETE = "incomplete"  # nothing differs, but something could not be compared
    NOTHING = "nothing compared"  # no element was compared with another


_WORST_FIRST = (Status.DIFFERS, Status.NOT_COMPARED, Status.CLOSE, Status.EXACT, Status.NOT_WRITTEN)
_VERDICTS = {
    Status.DIFFERS: Verdict.DIFFERS,
    Status.NOT_COMPARED: Verdict.INCOMPLETE,
    Status.CLOSE: Verdict.CLOSE,
    Status.EXACT: Verdict.SAME,
}


def verdict_of(statuses: Iterable[Status], elements: int) -> Verdict:
    """Return the worst status as verdict; `elements` is the number of compared elements."""
    found = set(statuses)
    if not elements and Status.DIFFERS not in found:
        return Verdict.NOTHING
    return next((_VERDICTS[status] for status in _WORST_FIRST if status in found and status in _VERDICTS), Verdict.SAME)


#: ULP of the largest magnitude in a tensor, 2**-8 of it: what is near where a promise is not measured.
UNMEASURED = 1 << 16


def within(difference: Difference, promise: Exactness) -> bool:
    """Return whether floats differ by no more than was measured for results that are promised to be close.

    Where nothing was measured, they may differ by UNMEASURED.
    """
    if promise.word != "close" or difference.problem or difference.at_scale is None:
        return False
    return difference.at_scale <= (UNMEASURED if promise.ulp is None else promise.ulp)


def tolerable(difference: Difference, tolerance: int) -> bool:
    """Return whether every difference is at most `tolerance` LSB or ULP."""
    measured = difference.above + difference.below == difference.differing
    return measured and not difference.problem and difference.largest <= tolerance


def status_of(difference: Difference, promise: Exactness) -> Status:
    """Return the status: exact, close within the promise, or differs."""
    if difference.same:
        return Status.EXACT
    return Status.CLOSE if within(difference, promise) else Status.DIFFERS


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """The comparison of one operator. `differences` are got - expected by tensor index.

    For `explain`, the dump or runtime is compared with the profile; for `verify`, the profile with the runtime.
    `promises` and `shapes` are those of the profile's results. `notes` give the reason why one of them was not
    compared, `failure` why the operator was not run. `assumed` are inputs that were computed, not observed.
    `overwritten` are results whose memory had been reused when the dump was taken, each with the later tensor in its
    place; a graph input is listed at its first reader. They are neither compared nor read. `began` are its variables as
    the sample before left them, if they explain more than the model's values. `silent` operators ran, and have no
    results that can be read: their effects show in later operators. `unwritten` are results that the runtime never
    writes: neither compared nor read.
    """

    index: int
    op: str
    differences: Mapping[int, Difference]
    promises: Mapping[int, Exactness] = field(default_factory=dict)
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    failure: str = ""
    assumed: tuple[int, ...] = ()
    overwritten: Mapping[int, int] = field(default_factory=dict)
    constants: Constants | None = None
    began: Mapping[int, Array] = field(default_factory=dict)
    silent: bool = False
    unwritten: tuple[int, ...] = ()

    @property
    def status(self) -> Status:
        """The worst status of its results."""
        statuses = {status_of(d, self.promises.get(t, EXACT)) for t, d in self.differences.items()}
        order = (Status.DIFFERS, Status.CLOSE, Status.EXACT)
        return next((status for status in order if status in statuses), Status.NOT_COMPARED)

    @property
    def is_unwritten(self) -> bool:
        """True if nothing was compared because the runtime never writes the results."""
        return bool(self.unwritten) and not (self.differences or self.failure or self.overwritten)

    @property
    def differs(self) -> bool:
        """True if any element differs by more than the profile's promise."""
        return self.status == Status.DIFFERS

    @property
    def reason(self) -> str:
        """The reason why it was not compared, or not fully; empty if it was."""
        if self.overwritten:
            return "; ".join(f"the dump holds tensor {o} in place of tensor {t}" for t, o in self.overwritten.items())
        if self.unwritten:
            return f"{NOT_WRITTEN}: tensor {', '.join(map(str, self.unwritten))}"
        return self.failure or ("" if self.differences else "the dump does not hold its results")


def over_samples(by_sample: Sequence[Sequence[Located]]) -> tuple[Located, ...]:
    """Return operators over all samples, given by sample."""
    return tuple(merge_samples(row) for row in zip(*by_sample, strict=True))


def merge_samples(operators: Sequence[Located]) -> Located:
    """Return one operator over all samples, differences merged; a tensor counts as compared if any sample does so."""
    if len(operators) == 1:
        return operators[0]
    last = operators[-1]
    tensors = dict.fromkeys(t for o in operators for t in o.differences)
    return replace(
        last,
        differences={t: merge(o.differences[t] for o in operators if t in o.differences) for t in tensors},
        promises={t: p for o in operators for t, p in o.promises.items()},
        shapes={t: s for o in operators for t, s in o.shapes.items()},
        notes={t: note for o in reversed(operators) for t, note in o.notes.items() if t not in tensors},
        failure=next((o.failure for o in operators if o.failure), ""),
        assumed=tuple(dict.fromkeys(t for o in operators for t in o.assumed)),
        overwritten={t: other for o in operators for t, other in o.overwritten.items()},
        constants=next((o.constants for o in reversed(operators) if o.constants is not None), None),
        silent=all(o.silent for o in operators),
        unwritten=tuple(dict.fromkeys(t for o in operators for t in o.unwritten)),
    )


@dataclass(frozen=True, slots=True)
class TensorResult:
    """The comparison of one tensor: a result of an operator, or an output of the graph.

    `difference` is None if it was not compared in any sample. `reason` describes what was not compared: everything, or
    some of the samples. `tolerance` is the caller's bound, in LSB or ULP. `promise` is the operator's own if it ran on
    the runtime's inputs, else that of all operators that the tensor depends on; None if no operator was run.
    `covered_by` is the operator whose comparison of the same values an output of the graph repeats, so that elements
    are counted once. `unwritten`: the runtime never writes it, in no sample.
    """

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference | None
    reason: str = ""
    promise: Exactness | None = None
    tolerance: int | None = None
    covered_by: int | None = None
    signature: str = ""
    unwritten: bool = False

    @property
    def status(self) -> Status:
        """The status: exact, close, differs or not compared; a difference takes precedence over missing comparisons."""
        if self.difference is None:
            return Status.NOT_WRITTEN if self.unwritten else Status.NOT_COMPARED
        if self.tolerance is not None and tolerable(self.difference, self.tolerance) and not self.difference.same:
            status = Status.CLOSE
        else:
            status = status_of(self.difference, self.promise or EXACT)
        return Status.NOT_COMPARED if self.reason and status != Status.DIFFERS else status

    @property
    def is_seen(self) -> bool:
        """True if at least one of its elements was compared."""
        return self.difference is not None and self.difference.elements > 0

    @property
    def is_whole(self) -> bool:
        """True if it was compared in all samples."""
        return self.difference is not None and not self.reason


@dataclass(frozen=True, slots=True, eq=False)
class OperatorResult:
    """The results of one operator in execution order. `constants` are its prepared constants.

    `signature` is the one that runs it, if the model has several. If it is `silent`, it ran and has no results that can
    be read, such as an assignment to a variable, which shows in what later operators read.
    """

    index: int
    op: str
    version: int
    tensors: tuple[TensorResult, ...]
    reason: str = ""
    constants: Constants | None = None
    signature: str = ""
    silent: bool = False

    @property
    def place(self) -> str:
        """Its index, after its signature if the model has several."""
        return place_in(self.signature, self.index)

    @property
    def status(self) -> Status:
        """The worst status of its tensors; not compared if it has none, unless it is silent."""
        if self.silent and not self.reason:
            return Status.EXACT
        statuses = {t.status for t in self.tensors} | ({Status.NOT_COMPARED} if self.reason else set())
        return next((status for status in _WORST_FIRST if status in statuses), Status.NOT_COMPARED)

    @property
    def is_whole(self) -> bool:
        """True if all of its results were compared, in all samples."""
        compared = [tensor.is_whole for tensor in self.tensors if not tensor.unwritten]
        return bool(compared or self.silent) and not self.reason and all(compared)

    @property
    def gaps(self) -> str:
        """The reasons why some of it was not compared; empty if all was that the runtime writes."""
        if self.is_whole or self.status == Status.NOT_WRITTEN:
            return ""
        reasons = dict.fromkeys([self.reason, *(tensor.reason for tensor in self.tensors)])
        return "; ".join(filter(None, reasons)) or "it has no results"

    @property
    def worst(self) -> TensorResult | None:
        """Its first differing tensor, or the first that is close."""
        for status in (Status.DIFFERS, Status.CLOSE):
            for tensor in self.tensors:
                if tensor.status == status:
                    return tensor
        return None

    @property
    def promise(self) -> Exactness | None:
        """The promise of its results; None if it was not run."""
        return next((t.promise for t in self.tensors if t.promise is not None), None)


@dataclass(frozen=True, slots=True, eq=False)
class InputFacts:
    """The source of the inputs: a generator and its seed, or another source, and the number of samples."""

    source: str
    seed: int | None
    samples: int


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """A subgraph that no signature runs, whose operators are not compared one by one.

    `callers` are the operators that run it, directly or through other subgraphs: their names by the signature ("" if
    the model has one) and their indices. Without callers a verification never runs it.
    """

    index: int
    name: str
    operators: int
    callers: Mapping[tuple[str, int], str]

    def __str__(self) -> str:
        """Return the number of its operators, with its index and name."""
        noun = "operator" if self.operators == 1 else "operators"
        return f"{self.operators:,} {noun} of subgraph {self.index} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class GoldenCoverage:
    """Operators and outputs of the signatures' graphs: the numbers of fully compared ones, and of all.

    `missing` describes everything that was not compared, or not in all samples; `inside` describes operators that were
    compared only through the results of the operators that call them. `unwritten` describes tensors that the runtime
    never writes.
    """

    operators: tuple[int, int]
    outputs: tuple[int, int]
    missing: tuple[str, ...]
    inside: tuple[str, ...]
    unwritten: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """True if nothing is missing."""
        return not self.missing


def apart(model: Model, parts: Sequence[Signed]) -> tuple[Apart, ...]:
    """Return the subgraphs with operators that no signature runs."""
    callers: dict[int, dict[tuple[str, int], str]] = {}
    for part in parts:
        for op in view(model, part.root.subgraph).ops:
            for index in reach(model, set(call(op.record))):
                callers.setdefault(index, {})[part.name, op.index] = op.name
    run = {root.subgraph for root in roots(model)}
    return tuple(
        Apart(k, graph.name or "", len(graph.operators), callers.get(k, {}))
        for k, graph in enumerate(model.subgraphs)
        if k not in run and graph.operators
    )
