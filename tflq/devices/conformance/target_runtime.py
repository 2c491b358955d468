"""A target as a runtime: it runs whole models through the protocol of targets (docs/target-protocol.md)."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tflq.devices.conformance.jobs import Job
from tflq.devices.conformance.memory import Memory
from tflq.devices.conformance.suite import Case
from tflq.devices.conformance.targets import Target, finish
from tflq.engine.api.files import load
from tflq.engine.runtimes import Description, Execution, Step, Stepped
from tflq.engine.runtimes.children import temporary_folder
from tflq.engine.runtimes.runtime import Content, Sample
from tflq.errors import RuntimeFailed, UnsupportedError
from tflq.model.ir import CARRIER, Model, TensorType, view
from tflq.typing import Array


@dataclass(frozen=True, slots=True)
class TargetRuntime:
    """A target that is asked for the outputs of whole models, all of them in one call."""

    target: Target

    @property
    def name(self) -> str:
        """The target's name."""
        return self.target.name

    def describe(self) -> Description:
        """Return the target's name and version, and this computer."""
        version = str(self.target.identity().get("version") or "")
        system = f"{platform.system()} {platform.machine()}"
        return Description(self.name, "", version, "", 0, platform.python_version(), np.__version__, system)

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> Execution:
        """Run every model on every sample.

        Raises:
            RuntimeMissing: There is no such program.
            RuntimeFailed: It refuses a model, crashes, or leaves outputs of other sizes.
            UnsupportedError: An output has no plain elements.
        """
        memory = Memory()
        expected = [list(_outputs(load(bytes(model)))) for model in models]
        cases = [
            _case(number, model, samples, like, memory)
            for number, (model, like) in enumerate(zip(models, expected, strict=True))
        ]
        with temporary_folder() as folder:
            job = Job(folder)
            job.create()
            for case in cases:
                job.add(case, memory)  # type: ignore[arg-type]  # reads arrays by name, as an archive
            ended = finish(self.target, job, cases, len(cases)).by_case
            outputs = tuple(
                self._answer(job, case, [like] * len(samples), ended.get(case.id, ""))
                for case, like in zip(cases, expected, strict=True)
            )
        return Execution(self.describe(), outputs)

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Step]]) -> Stepped:
        """Refuse: the protocol has no signatures, and no steps that follow each other.

        Raises:
            RuntimeFailed: Always.
        """
        raise RuntimeFailed(self.name, "the protocol of targets runs models without signatures and variables only")

    def _answer(
        self, job: Job, case: Case, like: Sequence[Sequence[Array]], how: str
    ) -> tuple[tuple[Array | None, ...], ...]:
        refusal = job.refusal(case)
        if refusal is not None:
            raise RuntimeFailed(self.name, f"refuses {case.aim}: {refusal or 'no reason is given'}")
        if not job.is_done(case):
            raise RuntimeFailed(self.name, f"{case.aim}: {how or 'no outputs'}")
        found = job.outputs(case, like)
        wrong = next((one for sample in found for one in sample if isinstance(one, str)), None)
        if wrong is not None:
            raise RuntimeFailed(self.name, f"{case.aim}: {wrong}")
        return tuple(tuple(one for one in sample if not isinstance(one, str)) for sample in found)


#: Names of the first and the second model of an observation.
_NAMES = ("the model", "the model with every tensor as an output")


def _case(number: int, model: Content, samples: Sequence[Sample], like: Sequence[Array], memory: Memory) -> Case:
    fed = tuple(tuple(memory.put(np.asarray(value)) for value in sample) for sample in samples)
    expected = tuple(map(memory.put, like))
    name = _NAMES[min(number, 1)]
    file = memory.put(np.frombuffer(model, np.uint8))
    return Case(f"{number:05d}-model", "", "", "smoke", name, (), file, fed, (expected,) * len(samples))


def _outputs(model: Model) -> Iterator[Array]:
    """Yield zeros of the types and shapes of a model's outputs."""
    graph = view(model)
    for tensor in graph.outputs:
        spec = graph.tensors[tensor]
        if not isinstance(spec.type, TensorType) or CARRIER[spec.type] == np.dtype(object):
            raise UnsupportedError("output for a target", reason=f"{spec.name!r} has no plain elements")
        yield np.zeros(spec.shape, CARRIER[spec.type])
