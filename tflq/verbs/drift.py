"""Two recordings of one model on the same inputs: operators whose bits changed, and an explanation of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tflq.comparison.evidence.dumps import load_dumps
from tflq.comparison.evidence.forms import LOG_FILES
from tflq.comparison.goldens.golden import Golden, Observation, StoredTensor, counterpart, fit, own_profile, parts_named
from tflq.comparison.goldens.stored import differing_input, load_golden, require_model
from tflq.comparison.inspection.difference import Difference, difference, merge
from tflq.comparison.results import InputFacts, Status, Verdict
from tflq.comparison.verification.report import known_changes
from tflq.comparison.verification.verifying import verify
from tflq.diagnosis.amplification import RowChoice, add, choice, chooses
from tflq.diagnosis.findings import Findings
from tflq.engine.api.files import Source, Subject, subject
from tflq.engine.profiles.history import ReleaseChange
from tflq.errors import GoldenError, TflqError
from tflq.interrupts import Progress, silent
from tflq.model.ir import Model, Signed, signed, view
from tflq.model.ir.signatures import place_in
from tflq.model.storage.output import PathLike
from tflq.model.surgery.cut import OPAQUE
from tflq.texts import Tabular, display_by
from tflq.typing import Array
from tflq.verbs.explain import explain


class Drifted(str, Enum):
    """The change of an operator between two recordings."""

    SAME = "same"
    CHANGED = "changed"  # its inputs are equal, its bits differ
    FOLLOWS = "follows"  # its results differ, and so do its inputs
    UNKNOWN = "unknown"  # no results were recorded


@dataclass(frozen=True, slots=True)
class OperatorDrift:
    """The change of one operator. `difference` is over the samples that show it.

    The expected values are the first recording's. `samples` is the number of samples in which both recordings hold all
    of its results, or another signature ran.
    """

    index: int
    op: str
    drifted: Drifted
    difference: Difference | None = None
    samples: int = 0
    signature: str = ""

    @property
    def place(self) -> str:
        """Its index, after its signature if the model has several."""
        return place_in(self.signature, self.index)


@display_by("golden:drift_card", "drift_document", "operators")
@dataclass(frozen=True, slots=True, eq=False)
class Drift(Tabular):
    """Two recordings compared. `findings` explain the second's first changed operator from the first's profile.

    `own` are the profiles of both runtimes, if each of them reproduces every bit of its recording, and `changes` what
    releases changed between them in the operators that differ. `choices` count the rows of the outputs that choose
    another element. `outputs` are those of the graph, None if no sample of both holds the output; `output_samples` is
    the number of samples in which both do, or another signature ran. `tensors` is True if both recordings declare that
    they hold the operators' results.
    """

    first: str
    second: str
    runtimes: tuple[Any, Any]
    profile: str
    samples: int
    operators: tuple[OperatorDrift, ...]
    outputs: tuple[Difference | None, ...]
    output_samples: tuple[int, ...]
    tensors: bool
    findings: Findings | None = None
    choices: tuple[RowChoice, ...] = ()
    own: tuple[str, str] | None = None
    changes: tuple[ReleaseChange, ...] = ()

    @property
    def differs(self) -> bool:
        """True if any bit does."""
        moved = any(o.drifted in (Drifted.CHANGED, Drifted.FOLLOWS) for o in self.operators)
        return moved or any(d is not None and not d.same for d in self.outputs)

    @property
    def verdict(self) -> Verdict:
        """The verdict: differs, explained, nothing compared, incomplete, or same.

        Same requires that every output was compared, and every operator if both recordings hold results.
        """
        if self.differs:
            return Verdict.DIFFERS if self.own is None else Verdict.EXPLAINED
        if not any(self.output_samples) and not any(o.samples for o in self.operators):
            return Verdict.NOTHING
        counts = [*self.output_samples, *((o.samples for o in self.operators) if self.tensors else ())]
        return Verdict.INCOMPLETE if any(count < self.samples for count in counts) else Verdict.SAME

    @property
    def changed(self) -> tuple[OperatorDrift, ...]:
        """The operators that computed other bits from equal inputs."""
        return tuple(o for o in self.operators if o.drifted == Drifted.CHANGED)


def diff_goldens(model: Source | Model, first: PathLike, second: PathLike, progress: Progress = silent) -> Drift:
    """Compare two goldens of one model, recorded on the same inputs, or two logs (.log, .txt) of a board.

    `progress` is called as progress(what, done, total).

    Raises:
        GoldenError: They are of other models or inputs, or a log lacks inputs.
        InputError: A log holds no tensor of the model.
        FileAccessError: One cannot be read.

    Example:
        >>> golden = "golden/recorded/digits_mobilenet_int8.npz"
        >>> tflq.diff_goldens("golden/models/digits_mobilenet_int8.tflite", golden, golden).changes
        ()
    """
    target = subject(model)
    paths = str(first), str(second)
    goldens = [_recorded(target.model, path) for path in paths]
    fed = next((golden for golden in goldens if _has_inputs(golden)), goldens[0])
    goldens = [_fit(target, golden, fed, path) for golden, path in zip(goldens, paths, strict=True)]
    counts = [len(golden.observations) for golden in goldens]
    if counts[0] != counts[1]:
        raise GoldenError(f"{paths[1]}: expected {counts[0]} samples as in {paths[0]}, got {counts[1]}")
    if goldens[0].steps != goldens[1].steps:
        raise GoldenError(f"{paths[1]}: ran other signatures, or ran them otherwise, than {paths[0]}")
    profile, _ = counterpart(goldens[0].runtime)
    every = signed(target.model)
    own = [parts_named(every, signature) for signature, _ in goldens[0].steps]
    found = [
        _of_part(model, part, paths, goldens, [k for k, p in enumerate(own) if p == number], profile.name)
        for number, part in enumerate(every)
    ]
    result = Drift(
        *paths,
        runtimes=(goldens[0].runtime, goldens[1].runtime),
        profile=profile.name,
        samples=counts[0],
        operators=tuple(o for one in found for o in one.operators),
        outputs=tuple(d for one in found for d in one.outputs),
        output_samples=tuple(count for one in found for count in one.seen),
        tensors=all(golden.tensors for golden in goldens),
        choices=tuple(choice for one in found for choice in one.choices),
    )
    result = _known(result, model, every, goldens, progress)
    return result if result.own is not None else replace(result, findings=_explain(result, every, own, goldens[1]))


def _known(
    found: Drift, model: Source | Model, every: Sequence[Signed], goldens: Sequence[Golden], progress: Progress
) -> Drift:
    """Return the drift; if it differs, with both runtimes' own profiles where each reproduces its whole recording."""
    own = [own_profile(golden.runtime) for golden in goldens]
    if not found.differs or own[0] is None or own[1] is None:
        return found
    for golden, profile in zip(goldens, own, strict=True):
        golden = replace(golden, tolerances=())
        if verify(model, golden, profile=profile, progress=progress).verdict != Verdict.SAME:
            return found
    names = own[0].name, own[1].name
    changes: dict[ReleaseChange, None] = {}
    for part in every:
        changed = [o.index for o in found.changed if o.signature == part.name]
        if not found.changed:
            changed = [op.index for op in view(part.model).ops]
        changes |= dict.fromkeys(known_changes(part.model, changed, *names))
    return replace(found, own=names, changes=tuple(changes))


@dataclass(frozen=True, slots=True, eq=False)
class _OfPart:
    """One signature's drift. Counts of samples include those of other signatures, in which nothing was to compare."""

    operators: Sequence[OperatorDrift]
    outputs: Sequence[Difference | None]
    seen: Sequence[int]
    choices: Sequence[RowChoice]


def _of_part(
    source: Source | Model,
    part: Signed,
    paths: tuple[str, str],
    goldens: Sequence[Golden],
    numbers: Sequence[int],
    profile: str,
) -> _OfPart:
    """Compare the samples of one signature."""
    graph = view(part.model)
    elsewhere = len(goldens[0].observations) - len(numbers) if numbers else 0
    chosen = [golden.chosen(numbers) for golden in goldens]
    named_never = [(s, t) for golden in goldens for s, t in golden.unwritten or ()]
    never = frozenset(t for s, t in named_never if s in (part.signature, part.root.signature))
    drifts: list[OperatorDrift | None] = [None] * len(graph.ops)
    outputs: dict[int, Difference] = {}
    choices: dict[int, RowChoice] = {}
    seen, walked = [elsewhere] * len(graph.outputs), [elsewhere] * len(graph.ops)
    for k, (one, other) in enumerate(zip(chosen[0].observations, chosen[1].observations, strict=True)):
        at = None if one.continues else differing_input(one, other)  # a step may take an earlier one's results
        if at is not None:
            raise GoldenError(f"{paths[1]}: sample {numbers[k]} has another input {at} than in {paths[0]}")
        for position, (a, b) in enumerate(zip(one.outputs, other.outputs, strict=True)):
            seen[position] += graph.outputs[position] in never or (a is not None and b is not None)
            if a is None or b is None:
                continue
            outputs[position] = merge([*filter(None, [outputs.get(position)]), difference(a, b, k)])
            if chooses(a, b):
                choices[position] = add(choices.get(position), choice(graph.outputs[position], a, b))
        values = _values(part.model, one), _values(part.model, other)
        for op in graph.ops:
            results = [t for t in op.writes if graph.tensors[t].type not in OPAQUE]
            walked[op.index] += all(t in never or t in held for t in results for held in values)
        _walk(part.model, *values, never, k, drifts)
    operators = [
        replace(o or OperatorDrift(op.index, op.name, Drifted.UNKNOWN), samples=count, signature=part.name)
        for op, o, count in zip(graph.ops, drifts, walked, strict=True)
    ]
    is_known = all(golden.tensors and golden.runtime for golden in goldens)  # a board is not the profile's runtime
    if is_known and any(o.drifted == Drifted.FOLLOWS for o in operators):
        operators = _by_profile(source, part, goldens, profile, operators)
    return _OfPart(
        operators=operators,
        outputs=[outputs.get(position) for position in range(len(graph.outputs))],
        seen=seen,
        choices=tuple(choices.values()),
    )


def _recorded(model: Model, path: str) -> Golden:
    """Return the golden at a path, or what the log of a board holds of the first subgraph."""
    if not path.lower().endswith(LOG_FILES):
        return load_golden(path)
    graph, seen = view(model), []
    for number, dump in enumerate(load_dumps(model, path)):
        if any(tensor not in dump.tensors for tensor in graph.inputs):
            reason = "lacks the inputs, so that it is not known whether both builds had the same: print them, too"
            raise GoldenError(f"{path}: sample {number} {reason}")
        inputs = tuple(dump.tensors[tensor] for tensor in graph.inputs)
        results = {tensor: value for tensor, value in dump.tensors.items() if tensor not in graph.inputs}
        seen.append(Observation(inputs, tuple(results.get(tensor) for tensor in graph.outputs), results))
    is_whole = all(tensor in one.tensors for one in seen for op in graph.ops for tensor in op.outputs if tensor >= 0)
    return Golden(tuple(seen), is_whole, InputFacts(path, None, len(seen)), {})


def _has_inputs(golden: Golden) -> bool:
    return isinstance(golden.observations, StoredTensor) or any(seen.inputs for seen in golden.observations)


def _fit(target: Subject, golden: Golden, fed: Golden, path: str) -> Golden:
    """Return a golden that fits the model; one without inputs gets those of `fed`."""
    if not _has_inputs(golden):
        pairs = zip(golden.observations, fed.observations, strict=False)
        golden = replace(golden, observations=tuple(replace(seen, inputs=fed.inputs) for seen, fed in pairs))
    require_model(path, golden.model_sha256, target.facts.sha256)
    return fit(golden, signed(target.model))


def _values(model: Model, observation: Observation) -> dict[int, Array]:
    """Return the values of a sample, by tensor."""
    graph = view(model)
    named = {**dict(zip(graph.outputs, observation.outputs, strict=True)), **observation.tensors}
    named |= dict(zip(graph.inputs, observation.inputs, strict=True))
    return {t: v for t, v in named.items() if v is not None}


def _walk(
    model: Model,
    one: Mapping[int, Array],
    other: Mapping[int, Array],
    never: frozenset[int],
    k: int,
    drifts: list[OperatorDrift | None],
) -> None:
    """Record the changes of every operator in one sample; known changes stay.

    Tensors that a runtime `never` writes are constants: both runtimes compute with the same.
    """
    graph = view(model)
    equal = {t: difference(one[t], other[t]).same for t in one if t in other}
    for op in graph.ops:
        known, results = drifts[op.index], [t for t in op.outputs if t in equal]
        if not results:
            continue
        first = next((t for t in results if not equal[t]), None)
        if first is None:
            drifts[op.index] = known or OperatorDrift(op.index, op.name, Drifted.SAME)
            continue
        fed = [t for t in op.inputs if t not in never and (t in graph.last_writers or t in graph.inputs)]
        word = Drifted.CHANGED if all(equal.get(t, False) for t in fed) else Drifted.FOLLOWS
        if known is not None and known.drifted == Drifted.CHANGED and word == Drifted.FOLLOWS:
            continue
        before = [known.difference] if known is not None and known.drifted == word and known.difference else []
        found = merge([*before, difference(one[first], other[first], k)])
        drifts[op.index] = OperatorDrift(op.index, op.name, word, found)


def _by_profile(
    model: Source | Model, part: Signed, goldens: Sequence[Golden], profile: str, operators: list[OperatorDrift]
) -> list[OperatorDrift]:
    """Return the operators; with different inputs, one counts as changed if `profile` fits only the first recording."""
    reports = [verify(model, one, profile=profile, signature=part.name or None).operators for one in goldens]
    return [
        replace(o, drifted=Drifted.CHANGED)
        if o.drifted == Drifted.FOLLOWS and before.status == Status.EXACT and after.status == Status.DIFFERS
        else o
        for o, before, after in zip(operators, *reports, strict=True)
    ]


def _explain(found: Drift, every: Sequence[Signed], numbers: Sequence[int], golden: Golden) -> Findings | None:
    """Return what explains the first changed operator in the second recording.

    `numbers` are the positions in `every` of its samples' signatures.
    """
    changed = next(iter(found.changed), None)
    if changed is None:
        return None
    part = next(part for part in every if part.name == changed.signature)
    chosen = golden.chosen([k for k, number in enumerate(numbers) if every[number] is part])
    first = changed.difference.first if changed.difference is not None else None
    observation = chosen.observations[0 if first is None else first.sample]
    try:
        findings = explain(part.model, _values(part.model, observation), found.profile, op=changed.index)
        return replace(findings, signature=part.name)
    except (TflqError, ValueError):
        return None
