"""Run a model by its signatures, step by step.

Run a subgraph by the names that a signature gives its inputs and outputs.

A model under a profile, run step by step by signatures: variables and resources live from step to step.

A real runtime takes the same steps: `tflq.engine.runtimes.Runtime.run_steps`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tflq.engine.api.session import Details, Exclusion, SubgraphSession, exclusive, give, tensor_details
from tflq.engine.interpreter import Trace
from tflq.engine.interpreter.plan import Limits, current_limits
from tflq.engine.kernels.kernel import Exactness
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import Invocation
from tflq.errors import InputError, UnknownNameError
from tflq.model.ir import Model, SignatureDef, choose_roots, view
from tflq.model.ir.graph import check_structure
from tflq.model.ir.signatures import signature_of
from tflq.typing import Array


class Owner(Protocol):
    """The interface of the interpreter that a runner needs."""

    _exclusion: Exclusion

    def _signatures(self) -> dict[str, SignatureDef]: ...

    def _session(self, index: int) -> SubgraphSession: ...

    def _invoke(self, subgraph: int) -> None: ...


class SignatureRunner:
    """A callable: arrays by input name in, arrays by output name out.

    It is part of its interpreter: a call while another thread is in a call of either raises a StateError.
    """

    def __init__(self, interpreter: Owner | None = None, signature_key: str | None = None) -> None:
        if interpreter is None:
            raise InputError("None interpreter provided.")
        if signature_key is None:
            raise InputError("None signature_key provided.")
        signatures = interpreter._signatures()
        if signature_key not in signatures:
            error = UnknownNameError("signature", signature_key, tuple(signatures))
            raise error.opening(f'Invalid signature_key provided: "{signature_key}".')
        signature = signatures[signature_key]
        self._interpreter, self._signature_key = interpreter, signature_key
        self._subgraph_index = signature.subgraph_index
        self._session = interpreter._session(signature.subgraph_index)
        self._inputs, self._outputs = signature_by_name(signature.inputs), signature_by_name(signature.outputs)
        self._exclusion = interpreter._exclusion

    @exclusive
    def __call__(self, /, **inputs: Any) -> dict[str, Array]:
        """Resize the inputs to the arrays' shapes, allocate, run, and return copies of the outputs."""
        if len(inputs) != len(self._inputs):
            raise InputError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(self._inputs)} vs provided {len(inputs)}",
                expected=list(self._inputs),
                got=list(inputs),
            )
        for name in inputs:
            if name not in self._inputs:
                error = UnknownNameError("input", name, tuple(self._inputs))
                raise error.opening(f"Invalid Input name ({name}) for SignatureDef")
        session = self._session
        for name, value in inputs.items():
            session.resize(self._inputs[name], _shape_of(name, value), strict=False)
        session.allocate()
        for name, value in inputs.items():
            session.set(self._inputs[name], value)
        self._interpreter._invoke(self._subgraph_index)
        return {name: give(session.value(tensor), session.type(tensor)) for name, tensor in self._outputs.items()}

    @exclusive
    def get_input_details(self) -> dict[str, Details]:
        """Return details of the input tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._inputs.items()}

    @exclusive
    def get_output_details(self) -> dict[str, Details]:
        """Return details of the output tensors, by name."""
        return {name: tensor_details(self._session, tensor) for name, tensor in self._outputs.items()}


def signature_by_name(pairs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return tensor indices by name, in alphabetical order (LiteRT keeps them in a std::map)."""
    return dict(sorted(pairs, key=lambda pair: pair[0].encode(errors="surrogateescape")))


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    """Return the shape of a value that NumPy converts to an array. Raises InputError if its rows differ in length."""
    try:
        return np.shape(value)
    except ValueError as error:
        raise InputError("is no array: its rows differ in length", name=name) from error


@dataclass(frozen=True, slots=True, eq=False)
class StepResult:
    """The results of one step: outputs by name, and their promises for equal inputs of this step.

    `named` gives the outputs' tensors. `trace` holds all tensors of the subgraph if they were kept.
    """

    step: Invocation
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
        self._sessions: dict[int, SubgraphSession] = {}
        self._resources: dict[Hashable, Any] = {}

    def run(self, step: Invocation, *, keep_all: bool = False) -> StepResult:
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

    def _run(self, subgraph: int, given: Mapping[int, Array], *, keep_all: bool) -> tuple[SubgraphSession, Trace]:
        session = self._sessions.get(subgraph)
        if session is None:
            shared = self._limits, self._resources, True
            session = self._sessions[subgraph] = SubgraphSession(self.model, self.profile, subgraph, False, *shared)
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
        return root.subgraph, signature_by_name(named.inputs), signature_by_name(named.outputs)


def take(step: Invocation, latest: Mapping[str, Array]) -> dict[str, Array]:
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
    model: Model,
    profile: str | Profile,
    steps: Iterable[Invocation],
    *,
    keep_all: bool = False,
    limits: Limits | None = None,
) -> Iterator[StepResult]:
    """Yield the results of each step, all of them run in one interpreter."""
    stepper = Stepper(model, profile, limits)
    for step in steps:
        yield stepper.run(step, keep_all=keep_all)
