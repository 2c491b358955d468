"""The protocol of all real runtimes, and the processor they run on.

The protocol of all real runtimes, and the description of a run.

Arrays to and from an `.npz` file without pickling: strings travel as lengths and bytes.

The child process has the same functions (child/tflq_wire.py), without the checks of `unpack`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tflq.engine.runtimes.child import tflq_wire
from tflq.errors import InputError
from tflq.typing import Array

#: The bytes of a model's file.
Content = bytes | memoryview
#: The inputs, or the outputs, of one invocation, in the interpreter's own order.
Sample = tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Invocation:
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


def by_position(sample: Sample) -> Invocation:
    """Return a step of the first subgraph."""
    return Invocation(None, {str(i): value for i, value in enumerate(sample)})


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
class RuntimeOutputs:
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

    def run(self, models: Sequence[Content], samples: Sequence[Sample]) -> RuntimeOutputs:
        """Run every model on every sample, each time in a fresh interpreter. Raise RuntimeMissing or RuntimeFailed."""
        ...

    def run_steps(self, models: Sequence[Content], sequences: Sequence[Sequence[Invocation]]) -> Stepped:
        """Run every model through every sequence of steps, each sequence in one fresh interpreter.

        So variables keep their values from step to step. Raise RuntimeMissing or RuntimeFailed, also if the runtime
        cannot run signatures.
        """
        ...


def pack(name: str, value: Array) -> dict[str, Array]:
    """Return the entries for `value` under `name`. Arrays of strings (object or S) need three."""
    return tflq_wire.pack(name, value)


def unpack(name: str, entries: Mapping[str, Array]) -> Array | None:
    """Return the array that `pack` stored under `name`; None if there is none. Strings come back as bytes objects.

    Raises:
        InputError: The entries of an array of strings contradict each other.
    """
    if name in entries:
        return entries[name]
    if name + ".lengths" not in entries:
        return None
    kinds = (".lengths", np.int64), (".shape", np.int64), (".bytes", np.uint8)
    lengths, shape, raw = (entries.get(name + kind, np.empty(0)) for kind, _ in kinds)
    if any(part.ndim != 1 or part.dtype != kind for part, (_, kind) in zip((lengths, shape, raw), kinds, strict=True)):
        raise InputError("entries .lengths, .shape and .bytes are not an array of strings", name=name)
    if min(lengths, default=0) < 0 or sum(lengths.tolist()) != raw.size or math.prod(shape.tolist()) != lengths.size:
        raise InputError("entries .lengths, .shape and .bytes contradict each other", name=name)
    found: Array = tflq_wire.unpack(name, entries)
    return found
