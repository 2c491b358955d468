"""Run a model in a runtime, with every operator's results read back as outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tflq.comparison.inspection.difference import difference
from tflq.comparison.verification.feeding import Fed, Feeds
from tflq.comparison.verification.golden import Golden, Observation
from tflq.comparison.verification.unwritten import unwritten_by_test
from tflq.engine.api.files import save
from tflq.engine.api.subject import Subject
from tflq.engine.runtimes import Execution, Runtime, Step, Stepped
from tflq.engine.runtimes.runtime import Content
from tflq.errors import RuntimeFailed
from tflq.model.ir import Model, Root, input_names, output_names, view
from tflq.model.surgery.tap import all_outputs, tap_signatures
from tflq.statements import Statement
from tflq.typing import Array

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
    runtime: Runtime, tapped: Content, taps: Mapping[Root, Taps], sequences: Sequence[Sequence[Fed]], stepped: Stepped
) -> dict[Root, frozenset[int]]:
    """Return the tensors that the runtime never writes; only delegates leave any."""
    observed: dict[Root, list[Mapping[str, Array | None]]] = {}
    steps: dict[Root, tuple[Model, Step]] = {}
    for sequence, runs in zip(sequences, stepped.outputs[1], strict=True):
        for fed, run in zip(sequence, runs, strict=True):
            observed.setdefault(fed.part.root, []).append(run)
            steps.setdefault(fed.part.root, (fed.part.model, replace(fed, carried=()).step()))
    return unwritten_by_test(runtime, tapped, steps, taps, observed)


def _run(runtime: Runtime, models: Sequence[Content], sequences: Sequence[Sequence[Fed]], feeds: Feeds) -> Stepped:
    samples = [sequence[0].sample for sequence in sequences]
    try:
        if all(len(sequence) == 1 and sequence[0].part.signature is None for sequence in sequences):
            return _step(runtime.run(models, samples))
        return runtime.run_steps(models, [[fed.step() for fed in sequence] for sequence in sequences])
    except RuntimeFailed as error:
        raise RuntimeFailed(error.runtime, _said(error.reason, feeds)) from error


def _step(execution: Execution) -> Stepped:
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
    fed: Fed,
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


def _changed(fed: Fed, one: Observation) -> int:
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
