"""The protocol of all real runtimes, and the description of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tflq.typing import Array

#: The bytes of a model's file.
Content = bytes | memoryview
#: The inputs, or the outputs, of one invocation, in the interpreter's own order.
Sample = tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One invocation: inputs by the signature's names.

    Without a signature the first subgraph runs, and its inputs and outputs are named by position: "0", "1", ...
    Inputs in `carried` take the latest output of the same name of the steps before it, of any signature. An input in
    `greedy` is a token: of shape greedy[name][1], the index of the greatest element in the last row of the latest
    output greedy[name][0]. The memory of outputs in `poisoned` is filled with one byte before the step runs, so that
    values which the runtime does not write show; a runtime without such memory ignores it.
    """

    signature: str | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    greedy: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    poisoned: tuple[str, ...] = ()


def by_position(sample: Sample) -> Step:
    """Return a step of the first subgraph."""
    return Step(None, {str(i): value for i, value in enumerate(sample)})


@dataclass(frozen=True, slots=True)
class Description:
    """The exact runtime of a run. `delegated` counts the delegate's partitions in each model of the run.

    `vectors` names the processor's widest vector extension, `first_level_cache` is the size of its first-level data
    cache in bytes: both decide bits of floats. Empty and 0 where unknown.
    """

    name: str
    package: str
    version: str
    resolver: str
    threads: int
    python: str
    numpy: str
    platform: str
    delegate: str = ""
    delegated: tuple[int, ...] = ()
    cpu: str = ""
    vectors: str = ""
    first_level_cache: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """The results of a runtime: `outputs[m][s]` are those of model m for sample s, None for a missing value."""

    description: Description
    outputs: tuple[tuple[tuple[Array | None, ...], ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Stepped:
    """The results of a runtime: `outputs[m][s][k]` are those of model m at step k of sequence s, by name.

    A missing value is None.
    """

    description: Description
    outputs: tuple[tuple[tuple[Mapping[str, Array | None], ...], ...], ...]


class Runtime(Protocol):
    """A real interpreter of `.tflite` models, run out of this process."""

    @property
    def name(self) -> str:
        """Its name here, such as "litert-ref"."""
        ...

    def describe(self) -> Description:
        """Return the description of the runtime. Raise RuntimeMissing if it is not installed."""
        ...

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> Execution:
        """Run every model on every sample, each time in a fresh interpreter. Raise RuntimeMissing or RuntimeFailed."""
        ...

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Step]]) -> Stepped:
        """Run every model through every sequence of steps, each sequence in one fresh interpreter.

        So variables keep their values from step to step. Raise RuntimeMissing or RuntimeFailed, also if the runtime
        cannot run signatures.
        """
        ...
