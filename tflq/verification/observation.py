"""Run a model in a runtime, with every operator's results read back as outputs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from tflq.api.files import save
from tflq.api.subject import Subject
from tflq.inspection.difference import difference
from tflq.ir import view
from tflq.runtimes import Runtime
from tflq.surgery.tap import all_outputs
from tflq.verification.golden import Golden, Observation
from tflq.verification.inputs import Inputs


def observe(subject: Subject, runtime: Runtime, inputs: Inputs, *, all_tensors: bool) -> Golden:
    """Return the runtime's results. The outputs are always those of the unchanged file.

    With `all_tensors`, a second model runs as well, whose outputs are all tensors; a note reports whether observation
    changed a result.
    """
    models: list[bytes | memoryview] = [subject.data]
    tensors: tuple[int, ...] = ()
    if all_tensors:
        tapped, tensors = all_outputs(subject.model)
        models.append(save(tapped))
    execution = runtime.run(models, inputs.samples)
    observations = []
    for k, sample in enumerate(inputs.samples):
        tapped_values = dict(zip(tensors, execution.outputs[1][k] if all_tensors else (), strict=True))
        observations.append(Observation(sample, execution.outputs[0][k], MappingProxyType(tapped_values)))
    golden = Golden(
        tuple(observations), all_tensors, inputs.facts, execution.description, model_sha256=subject.facts.sha256
    )
    return golden if not all_tensors else _with_notes(subject, golden)


def _with_notes(subject: Subject, golden: Golden) -> Golden:
    """Add a note if an output of the model differs between the plain run and the observed one."""
    changed = 0
    for observation in golden.observations:
        for tensor, plain in zip(view(subject.model).outputs, observation.outputs, strict=True):
            tapped = observation.tensors.get(tensor)
            if plain is not None and tapped is not None and not difference(plain, tapped).same:
                changed += 1
    if not changed:
        return golden
    note = (
        f"reading all tensors changed {changed} output(s) of this runtime: the tensors compared here are those of the "
        "observed run, not of the plain one"
    )
    return replace(golden, notes=(*golden.notes, note))
