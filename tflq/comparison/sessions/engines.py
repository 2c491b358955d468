"""The engines of sessions: a profile in this process, or a real runtime in a process of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tflq.engine.api.files import Subject, save
from tflq.engine.api.signature import Stepper, take
from tflq.engine.interpreter.plan import current_limits
from tflq.engine.profiles import Profile
from tflq.engine.profiles import by_name as profile_by_name
from tflq.engine.runtimes import Description, Invocation, Runtime
from tflq.engine.runtimes import by_name as runtime_by_name
from tflq.model.ir import Root, view
from tflq.model.ir.signatures import choose_roots
from tflq.model.surgery.tap import tap_signatures, visible
from tflq.texts import Statement
from tflq.typing import Array

#: Before the name of a runtime, to distinguish it from the profile of the same name.
LIVE = "runtime:"
#: The earlier form of the same, which is still accepted.
_EARLIER = "live:"


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """The results of one step: inputs and outputs by name, and results of operators by tensor index if observed."""

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    tensors: Mapping[int, Array] = field(default_factory=dict)


class Engine(Protocol):
    """A way to run the steps of a session, all in one interpreter."""

    @property
    def name(self) -> str:
        """The name of the profile, or of the runtime after "runtime:"."""
        ...

    def run(self, steps: Sequence[Invocation], *, tensors: bool = False) -> Iterator[Observed]:
        """Yield the results of the steps, with `tensors` those of all operators, too."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ProfileEngine:
    """A model under a profile."""

    subject: Subject
    profile: Profile

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    def run(self, steps: Sequence[Invocation], *, tensors: bool = False) -> Iterator[Observed]:
        """Yield the results of the steps: see Engine.run."""
        stepper = Stepper(self.subject.model, self.profile)
        for step in steps:
            result = stepper.run(step, keep_all=tensors)
            yield Observed(result.inputs, result.outputs, result.tensors)


@dataclass(slots=True, eq=False)
class RuntimeEngine:
    """A model in a real runtime. `description` and `notes` are those of the latest run."""

    subject: Subject
    runtime: Runtime
    description: Description | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The runtime's name after "runtime:"."""
        return LIVE + self.runtime.name

    def run(self, steps: Sequence[Invocation], *, tensors: bool = False) -> Iterator[Observed]:
        """Yield the results of the steps: see Engine.run. Outputs are those of the unchanged file."""
        models: list[bytes | memoryview] = [self.subject.data]
        names: Mapping[Root, Mapping[str, int]] = {}
        self.notes = ()
        if tensors and _size(self.subject, steps) > current_limits().memory:
            text = f"{self.name}: the results of operators of all steps exceed the memory limit; only outputs"
            self.notes = (Statement(text, "only-outputs", runtime=self.name),)
        elif tensors:
            tapped, names = tap_signatures(self.subject.model)
            models.append(save(tapped))
        stepped = self.runtime.run_steps(models, [list(steps)])
        self.description = stepped.description
        latest: dict[str, Array] = {}
        for k, (step, outputs) in enumerate(zip(steps, stepped.outputs[0][0], strict=True)):
            held = {name: value for name, value in outputs.items() if value is not None}
            inputs = {**step.inputs, **take(step, latest)}
            latest.update(held)
            results: dict[int, Array] = {}
            if names:
                (root,) = choose_roots(self.subject.model, step.signature)
                every = stepped.outputs[1][0][k]
                results = {t: value for name, t in names[root].items() if (value := every.get(name)) is not None}
            yield Observed(inputs, held, results)


def _size(subject: Subject, steps: Sequence[Invocation]) -> int:
    """Return the bytes of all results of operators of all steps, as declared."""
    sizes: dict[str | None, int] = {}
    for step in steps:
        if step.signature not in sizes:
            graph = view(subject.model, choose_roots(subject.model, step.signature)[0].subgraph)
            shapes = (graph.tensors[t].shape for t in visible(graph))
            sizes[step.signature] = sum(8 * math.prod(max(1, n) for n in shape) for shape in shapes)
    return sum(sizes[step.signature] for step in steps)


def engine_of(subject: Subject, name: str | Profile | Runtime, python: str | None = None) -> Engine:
    """Return the engine of a profile, or of a runtime: by name after "runtime:", or as a value.

    Raises:
        UnknownNameError: There is no profile or runtime of that name.
    """
    if isinstance(name, Profile):
        return ProfileEngine(subject, name)
    if not isinstance(name, str):
        return RuntimeEngine(subject, name)
    runtime = live_name(name)
    if runtime is None:
        return ProfileEngine(subject, profile_by_name(name))
    return RuntimeEngine(subject, runtime_by_name(runtime, python=python))


def live_name(name: str) -> str | None:
    """Return the name of a real runtime, which follows "runtime:"; None for a profile's name."""
    kind, _, rest = name.partition(":")
    return rest if f"{kind}:" in (LIVE, _EARLIER) else None
