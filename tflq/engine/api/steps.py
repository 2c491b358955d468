"""A model under a profile, run step by step by signatures: variables and resources live from step to step.

A real runtime takes the same steps: `tflq.engine.runtimes.Runtime.run_steps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.engine.api.session import Session
from tflq.engine.api.signature import by_name
from tflq.engine.interpreter import Trace
from tflq.engine.interpreter.limits import Limits, current_limits
from tflq.engine.kernels.exactness import Exactness
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import Step
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import Model, choose_roots, view
from tflq.model.ir.signatures import signature_of
from tflq.model.ir.structure import check_structure
from tflq.typing import Array


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """The results of one step: outputs by name, and their promises for equal inputs of this step.

    `named` gives the outputs' tensors. `trace` holds all tensors of the subgraph if they were kept.
    """

    step: Step
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    promises: Mapping[str, Exactness]
    named: Mapping[str, int]
    trace: Trace

    @property
    def tensors(self) -> Mapping[int, Array]:
        """The tensors that were kept, by index: all, or the outputs."""
        return self.trace.values


class Stepper:
    """A model that runs steps. Its variables and resources live as long as it does.

    `latest` holds the latest value of every output by name, for inputs that are carried over.
    """

    def __init__(self, model: Model, profile: str | Profile, limits: Limits | None = None) -> None:
        check_structure(model)
        self.model, self.profile = model, profile_by_name(profile)
        self.latest: dict[str, Array] = {}
        self._limits = limits or current_limits()
        self._sessions: dict[int, Session] = {}
        self._resources: dict[Hashable, Any] = {}

    def run(self, step: Step, *, keep_all: bool = False) -> StepResult:
        """Run one step.

        Raises:
            UnknownNameError: The model has no such signature, or the signature no such input.
            InputError: An input is missing, does not fit, or no earlier step has the output that it takes.
        """
        subgraph, inputs, outputs = self._names(step.signature)
        given = {**step.inputs, **take(step, self.latest)}
        for name in given:
            if name not in inputs:
                raise UnknownNameError("input", name, tuple(inputs))
        missing = next((name for name in inputs if name not in given), None)
        if missing is not None:
            raise InputError("no value is given", name=missing)
        session, trace = self._run(subgraph, {inputs[name]: value for name, value in given.items()}, keep_all=keep_all)
        values = {name: session.value(tensor).copy() for name, tensor in outputs.items()}
        self.latest.update(values)
        promises = {name: trace.promise(tensor) for name, tensor in outputs.items()}
        return StepResult(step, given, values, promises, outputs, trace)

    def _run(self, subgraph: int, given: Mapping[int, Array], *, keep_all: bool) -> tuple[Session, Trace]:
        session = self._sessions.get(subgraph)
        if session is None:
            shared = self._limits, self._resources, True
            session = self._sessions[subgraph] = Session(self.model, self.profile, subgraph, False, *shared)
        for tensor, value in given.items():
            session.resize(tensor, value.shape, strict=False)
        session.allocate()
        for tensor, value in given.items():
            session.set(tensor, value)
        return session, session.invoke(keep_all)

    def _names(self, signature: str | None) -> tuple[int, dict[str, int], dict[str, int]]:
        """Return the subgraph that a step runs, and its inputs and outputs by name."""
        if signature is None:
            graph = view(self.model)
            inputs, outputs = ({str(i): t for i, t in enumerate(side)} for side in (graph.inputs, graph.outputs))
            return 0, inputs, outputs
        (root,) = choose_roots(self.model, signature)
        named = signature_of(self.model, root)
        assert named is not None  # it was found by its name
        return root.subgraph, by_name(named.inputs), by_name(named.outputs)


def take(step: Step, latest: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs of a step that come from the latest outputs of earlier ones.

    Raises:
        InputError: There is no output of that name.
    """
    names = (*step.carried, *(output for output, _ in step.greedy.values()))
    missing = next((name for name in names if name not in latest), None)
    if missing is not None:
        raise InputError("no earlier step has an output of this name", name=missing)
    given = {name: latest[name] for name in step.carried}
    for name, (output, shape) in step.greedy.items():
        scores = latest[output]
        given[name] = np.full(shape, scores.reshape(-1, scores.shape[-1])[-1].argmax(), np.int32)
    return given


def run_steps(
    model: Model, profile: str | Profile, steps: Iterable[Step], *, keep_all: bool = False, limits: Limits | None = None
) -> Iterator[StepResult]:
    """Yield the results of each step, all of them run in one interpreter."""
    stepper = Stepper(model, profile, limits)
    for step in steps:
        yield stepper.run(step, keep_all=keep_all)
