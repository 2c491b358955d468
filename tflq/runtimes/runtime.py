"""The protocol behind which every real runtime stands, and what a run of one says about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

Array = NDArray[Any]
#: The inputs, or the outputs, of one invocation, in the interpreter's own order.
Sample = tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class Description:
    """Exactly what ran. `delegated` counts the delegate's partitions in each model that was run.

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
    """What a runtime gave: `outputs[m][s]` are the outputs of model m for sample s, None where it holds no value."""

    description: Description
    outputs: tuple[tuple[tuple[Array | None, ...], ...], ...]


class Runtime(Protocol):
    """A real interpreter of `.tflite` models, run out of this process."""

    @property
    def name(self) -> str:
        """Its name here, such as "litert-ref"."""
        ...

    def describe(self) -> Description:
        """What would run. Raises RuntimeMissing where it is not installed."""
        ...

    def run(self, models: Sequence[bytes], samples: Sequence[Sample]) -> Execution:
        """Run every model on every sample, each time in a fresh interpreter. Raises RuntimeMissing, RuntimeFailed."""
        ...
