"""Run a model in a runtime, with every operator's results read back as outputs.

Tensors that a runtime never writes: their memory holds anything, so it is neither compared nor read.

A recording names those that a test found: their memory kept what it was filled with before the run, or changed with
inputs that they do not depend on. For recordings and dumps without that test the structure of the model decides
(tflq/engine/interpreter/fusions.py): such a tensor was not written if it differs from the computed value.

Recordings of several installed runtimes side by side: inputs are prepared first, and then threads may run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from tflq.comparison.goldens.golden import Golden, Observation, runnable
from tflq.comparison.inputs.prepare import InputPreparation
from tflq.comparison.inputs.read import FedSample, Feed, Feeds, make_feeds
from tflq.comparison.inspection.difference import difference, same_bits
from tflq.comparison.results import NOT_WRITTEN, Located
from tflq.engine.api.files import Subject, save
from tflq.engine.interpreter.fusions import constant_results, unpack_tensors
from tflq.engine.profiles import Profile
from tflq.engine.runtimes import Invocation, Runtime, RuntimeOutputs, Stepped, named
from tflq.engine.runtimes.runtime import Content
from tflq.errors import OptionError, RuntimeFailed, TflqError
from tflq.model.ir import Model, Root, input_names, output_names, signed, view
from tflq.model.surgery.tap import all_outputs, tap_signatures
from tflq.texts import Statement
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Tensors of a graph: `seen` were not written, `possible` were not if they differ from the computed value."""

    seen: frozenset[int] = frozenset()
    possible: frozenset[int] = frozenset()

    def holds(self, tensor: int, *, differs: bool) -> bool:
        """Return whether the tensor was not written; `differs`: from the computed value."""
        return tensor in self.seen or (differs and tensor in self.possible)


def unwritten(model: Model, profile: Profile, seen: Iterable[int] = ()) -> Unwritten:
    """Return the tensors that a runtime with a profile may not write, and those `seen` not to be written."""
    return Unwritten(frozenset(seen), unpack_tensors(view(model), profile))


def without_unwritten(located: Located, gaps: Unwritten) -> Located:
    """Return the comparison of an operator without results that the runtime never wrote."""
    known = {**dict.fromkeys(located.notes, False), **{t: not d.same for t, d in located.differences.items()}}
    lost = tuple(t for t, differs in known.items() if t in located.shapes and gaps.holds(t, differs=differs))
    if not lost:
        return located
    kept = {t: d for t, d in located.differences.items() if t not in lost}
    notes = {**located.notes, **dict.fromkeys(lost, NOT_WRITTEN)}
    return replace(located, differences=kept, notes=notes, unwritten=lost)


def unwritten_by_test(
    runtime: Runtime,
    tapped: Content,
    steps: Mapping[Root, tuple[Model, Invocation]],
    taps: Mapping[Root, Mapping[str, int]],
    observed: Mapping[Root, Sequence[Mapping[str, Array | None]]],
) -> dict[Root, frozenset[int]]:
    """Return the results of constants that a runtime does not write, by signature.

    The model with all tensors as outputs runs once more on zeros, on filled memory: what a runtime writes of constants
    is the same as in the runs before.

    Args:
        runtime: The runtime, which has a delegate.
        tapped: The file of the model with all tensors as outputs.
        steps: The graph and a step of each signature.
        taps: The tensors that the outputs are, by signature and name.
        observed: The outputs of earlier runs, by signature.
    """
    found: dict[Root, frozenset[int]] = {}
    for root, (model, step) in steps.items():
        constants = constant_results(view(model))
        names = {name: tensor for name, tensor in taps[root].items() if tensor in constants}
        again = _again(runtime, tapped, replace(step, poisoned=tuple(names))) if names else {}
        runs = observed[root]
        found[root] = frozenset(
            t for name, t in names.items() if name in again and any(_apart(again[name], run.get(name)) for run in runs)
        )
    return found


def _again(runtime: Runtime, tapped: Content, step: Invocation) -> Mapping[str, Array | None]:
    """Return the outputs of another run: on zeros, or on the same inputs if the runtime refuses zeros."""
    zeros = {name: value if value.dtype.hasobject else np.zeros_like(value) for name, value in step.inputs.items()}
    for inputs in (zeros, step.inputs):
        try:
            return runtime.run_steps([tapped], [[replace(step, inputs=inputs)]]).outputs[0][0][0]
        except TflqError:
            continue
    return {}


def _apart(one: Array | None, other: Array | None) -> bool:
    """Return whether two values have other bits; False if one is missing."""
    return one is not None and other is not None and not same_bits(one, other)


#: Words of a runtime that refuses the values of an input.
_OUTSIDE = ("out of bound", "out of range", "out-of-bound")
#: Names of outputs in a runtime's answer, with the tensors that they are.
Taps = Mapping[str, int]


def observe(subject: Subject, runtime: Runtime, feeds: Feeds, *, all_tensors: bool) -> Golden:
    """Return the runtime's results. The outputs are always those of the unchanged file.

    With `all_tensors`, a second model runs as well, whose outputs are all tensors; a note reports whether observation
    changed a result. Tensors that the runtime never writes have no value; `Golden.unwritten` names them.

    Raises:
        RuntimeMissing, RuntimeFailed: The runtime is not installed, or it refused or crashed.
    """
    models: list[Content] = [subject.data]
    taps = dict[Root, Taps]()
    if all_tensors:
        tapped, taps = _tap(subject, feeds)
        models.append(tapped)
    sequences = feeds.sequences()
    stepped = _run(runtime, models, sequences, feeds)
    tests = all_tensors and bool(stepped.description.delegate)
    lost = _unwritten(runtime, models[1], taps, sequences, stepped) if tests else {}
    observations, changed = [], 0
    for s, sequence in enumerate(sequences):
        latest: dict[str, Array | None] = {}
        for k, fed in enumerate(sequence):
            plain = stepped.outputs[0][s][k]
            observed = stepped.outputs[1][s][k] if all_tensors else {}
            root = fed.part.root
            one = _observation(fed, plain, observed, taps.get(root, {}), latest, lost.get(root, frozenset()))
            observations.append(one)
            changed += _changed(fed, one)
            latest |= plain
    facts = subject.facts.sha256
    golden = Golden(tuple(observations), all_tensors, feeds.facts, stepped.description, model_sha256=facts)
    keys = {fed.part.root: fed.part.signature for fed in feeds.steps}
    named = tuple((keys[root], t) for root, tensors in lost.items() for t in sorted(tensors))
    golden = replace(golden, unwritten=named if tests else None)
    return replace(golden, notes=(_note(changed),)) if changed else golden


def _tap(subject: Subject, feeds: Feeds) -> tuple[bytes, dict[Root, Taps]]:
    """Return the file of the observed model, and the tensors that its outputs are, by signature."""
    if all(fed.part.signature is None for fed in feeds.steps):
        model, tensors = all_outputs(subject.model)
        return save(model), {fed.part.root: {str(i): t for i, t in enumerate(tensors)} for fed in feeds.steps[:1]}
    model, names = tap_signatures(subject.model)
    return save(model), dict(names)


def _unwritten(
    runtime: Runtime,
    tapped: Content,
    taps: Mapping[Root, Taps],
    sequences: Sequence[Sequence[FedSample]],
    stepped: Stepped,
) -> dict[Root, frozenset[int]]:
    """Return the tensors that the runtime never writes; only delegates leave any."""
    observed: dict[Root, list[Mapping[str, Array | None]]] = {}
    steps: dict[Root, tuple[Model, Invocation]] = {}
    for sequence, runs in zip(sequences, stepped.outputs[1], strict=True):
        for fed, run in zip(sequence, runs, strict=True):
            observed.setdefault(fed.part.root, []).append(run)
            steps.setdefault(fed.part.root, (fed.part.model, replace(fed, carried=()).step()))
    return unwritten_by_test(runtime, tapped, steps, taps, observed)


def _run(
    runtime: Runtime, models: Sequence[Content], sequences: Sequence[Sequence[FedSample]], feeds: Feeds
) -> Stepped:
    samples = [sequence[0].sample for sequence in sequences]
    try:
        if all(len(sequence) == 1 and sequence[0].part.signature is None for sequence in sequences):
            return _step(runtime.run(models, samples))
        return runtime.run_steps(models, [[fed.step() for fed in sequence] for sequence in sequences])
    except RuntimeFailed as error:
        raise RuntimeFailed(error.runtime, _said(error.reason, feeds)) from error


def _step(execution: RuntimeOutputs) -> Stepped:
    """Return results by position as those of one step each."""
    named = (
        tuple(({str(i): value for i, value in enumerate(outputs)},) for outputs in samples)
        for samples in execution.outputs
    )
    return Stepped(execution.description, tuple(named))


def _said(reason: str, feeds: Feeds) -> str:
    """Return a failure of the runtime with what it means: the runtime itself, or the inputs."""
    if "invoking" not in reason:  # no input was looked at
        return reason
    if " of model 0" in reason:
        reason = f"the runtime itself cannot run the unchanged model on these inputs: {reason}"
    if feeds.facts.seed is not None and any(word in reason for word in _OUTSIDE):
        reason += "; these inputs were generated: give valid ones with --inputs (inputs=)"
    return reason


def _observation(
    fed: FedSample,
    plain: Mapping[str, Array | None],
    observed: Mapping[str, Array | None],
    taps: Taps,
    latest: Mapping[str, Array | None],
    lost: frozenset[int],
) -> Observation:
    """Return one step as it ran: `latest` are the outputs of the steps before it, `lost` were never written."""
    names = input_names(fed.part.model)
    carried = {i: latest[names[i]] for i in fed.carried}
    inputs = tuple(value if (taken := carried.get(i)) is None else taken for i, value in enumerate(fed.sample))
    keys = [str(i) for i in range(len(plain))] if fed.part.signature is None else output_names(fed.part.model)
    made = zip(keys, view(fed.part.model).outputs)  # noqa: B905 (a runtime may have fewer)
    outputs = tuple(None if tensor in lost else plain.get(key) for key, tensor in made)
    tensors = {tensor: None if tensor in lost else observed.get(name) for name, tensor in taps.items()}
    return Observation(inputs, outputs, MappingProxyType(tensors), fed.part.signature, fed.continues)


def _changed(fed: FedSample, one: Observation) -> int:
    """Return the number of outputs that differ between the plain run and the observed one."""
    pairs = zip(view(fed.part.model).outputs, one.outputs)  # noqa: B905 (a runtime may have fewer)
    both = ((plain, one.tensors.get(tensor)) for tensor, plain in pairs)
    return sum(a is not None and b is not None and not difference(a, b).same for a, b in both)


def _note(changed: int) -> str:
    text = (
        f"reading all tensors changed {changed} output(s) of this runtime: the tensors compared here are those of the "
        "observed run, not of the plain one"
    )
    return Statement(text, "observed-outputs", outputs=changed)


def outputs_recorder(
    target: Subject, against: str, inputs: Feed, samples: int, how: InputPreparation, signature: str | None = None
) -> Callable[[], Golden]:
    """Return what runs an installed runtime and returns its outputs, in any thread; the inputs are prepared here.

    What keeps this runtime alone from running is raised by what is returned, so that others are not affected.

    Raises:
        InputError: The inputs do not fit the model.
    """
    runtime = named(against)
    if runtime.is_absent:
        return partial(_refuse, runtime.missing("it is not installed"))
    parts = signed(target.model, signature)
    try:
        parts = runnable(parts, runtime)
    except OptionError as error:
        return partial(_refuse, RuntimeFailed(against, str(error)))
    fed = make_feeds(parts, inputs, samples, 0, how)
    return partial(observe, target, runtime, fed, all_tensors=False)


def _refuse(error: Exception) -> Golden:
    raise error
