"""Goldens: recorded results of a runtime, for comparison without that runtime; and their `.npz` archives.

Entry `tflq_golden` of an archive is JSON: format, model_sha256, runtime, inputs, samples, tensors. Sample k has
`s<k>_in<i>` and `s<k>_out<i>` and, if all tensors were recorded, `s<k>_t<index>`. An archive without `tflq_golden` has
no provenance. Bundles (`tflq/comparison/verification/bundle.py`) are another form.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np

from tflq.comparison.verification.results import InputFacts
from tflq.comparison.verification.signed import named
from tflq.display import display_by
from tflq.engine.interpreter.arrays import admit, open_shape
from tflq.engine.runtimes import Description
from tflq.engine.runtimes.transport import pack
from tflq.errors import GoldenError
from tflq.model.ir import Signed, view
from tflq.model.storage.archive import write_arrays
from tflq.typing import Array

FORMAT, PROVENANCE = "tflq-golden/1", "tflq_golden"
EMPTY: Mapping[int, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One sample of a runtime's run. `tensors` holds operator results by tensor index, if they were recorded.

    A value that the runtime does not hold is None. `signature` is the one that ran, None for the first subgraph; all
    arrays are those of its subgraph. If it `continues`, it ran in the interpreter of the sample before it, after it.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array | None, ...]
    tensors: Mapping[int, Array | None] = field(default_factory=lambda: EMPTY)
    signature: str | None = None
    continues: bool = False


class Stored(Sequence[Observation]):
    """Observations that are read on demand, and kept nowhere.

    `read` takes the number of a sample, and a flag that requests the operators' results.
    """

    def __init__(
        self,
        count: int,
        read: Callable[[int, bool], Observation],
        *,
        whole: bool = True,
        steps: Sequence[tuple[str | None, bool]] = (),
    ) -> None:
        self._count, self._read, self._whole = count, read, whole
        self.steps = tuple(steps) or ((None, False),) * count  # signature and continues of each, known without reading

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self._read(i, self._whole) for i in range(self._count)[k]]
        return self._read(range(self._count)[k], self._whole)

    def __iter__(self) -> Iterator[Observation]:
        return (self._read(k, self._whole) for k in range(self._count))

    def plain(self) -> Stored:
        """Return these observations without the operators' results."""
        return Stored(self._count, self._read, whole=False, steps=self.steps)

    def chosen(self, numbers: Sequence[int]) -> Stored:
        """Return some of the observations, by number."""
        steps = [self.steps[k] for k in numbers]
        return Stored(len(numbers), lambda k, whole: self._read(numbers[k], whole), whole=self._whole, steps=steps)

    def mapped(self, change: Callable[[Observation, int], Observation]) -> Stored:
        """Return the observations, each changed when it is read."""
        read = lambda k, whole: change(self._read(k, whole), k)  # noqa: E731
        return Stored(self._count, read, whole=self._whole, steps=self.steps)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A bound on an operator's differences in LSB (ULP of floats), valid until `expires` (YYYY-MM-DD), and the reason.

    `operator` is a name, an index, or "*" for all.
    """

    operator: str
    steps: int
    reason: str
    expires: str


@display_by("record:golden_card")
@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    """A runtime's recorded results of a model. `tensors` is True if observations hold all operators' results.

    `runtime` and `model_sha256` are empty for an archive without them. `unwritten` are the tensors that the runtime
    never writes, with their signatures: observations hold no values for them. None if that was not tested.
    """

    observations: Sequence[Observation]
    tensors: bool
    inputs: InputFacts
    runtime: Description | Mapping[str, object]
    model_sha256: str = ""
    notes: tuple[str, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()
    unwritten: tuple[tuple[str | None, int], ...] | None = None

    @property
    def steps(self) -> tuple[tuple[str | None, bool], ...]:
        """The signature of each sample, and whether it continues."""
        if isinstance(self.observations, Stored):
            return self.observations.steps
        return tuple((one.signature, one.continues) for one in self.observations)

    @property
    def runtime_facts(self) -> dict[str, Any]:
        """The runtime's facts by name; empty for an archive without them."""
        return asdict(self.runtime) if isinstance(self.runtime, Description) else dict(self.runtime)

    def plain(self) -> Golden:
        """Return the golden without the operators' results, which are then not even read."""
        observations = self.observations
        if isinstance(observations, Stored):
            return replace(self, observations=observations.plain(), tensors=False)
        return replace(self, observations=tuple(replace(one, tensors=EMPTY) for one in observations), tensors=False)

    def chosen(self, numbers: Sequence[int]) -> Golden:
        """Return the golden with these samples only."""
        observations = self.observations
        some = (
            observations.chosen(numbers)
            if isinstance(observations, Stored)
            else tuple(observations[k] for k in numbers)
        )
        return replace(self, observations=some)

    def together(self, other: Golden) -> Golden:
        """Return the facts of both goldens, without samples."""
        notes = (*self.notes, *(n for n in other.notes if n not in self.notes))
        tolerances = (*self.tolerances, *(t for t in other.tolerances if t not in self.tolerances))
        whole = self.tensors and other.tensors
        tested = self.unwritten is not None and other.unwritten is not None
        unwritten = tuple(dict.fromkeys((*(self.unwritten or ()), *(other.unwritten or ())))) if tested else None
        return replace(self, observations=(), tensors=whole, notes=notes, tolerances=tolerances, unwritten=unwritten)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an `.npz` archive, which has no tolerances. Equal goldens give equal bytes."""
        entries: dict[str, Array] = {PROVENANCE: np.frombuffer(self._provenance().encode(), np.uint8)}
        for k, observation in enumerate(self.observations):
            start = f"{prefix(observation.signature)}s{k}_"
            for i, value in enumerate(observation.inputs):
                entries |= pack(f"{start}in{i}", value)
            for i, output in enumerate(observation.outputs):
                entries |= pack(f"{start}out{i}", output) if output is not None else {}
            for index, tensor in sorted(observation.tensors.items()):
                entries |= pack(f"{start}t{index}", tensor) if tensor is not None else {}
        write_arrays(path, entries, compress=True)

    def _provenance(self) -> str:
        facts: dict[str, Any] = {
            "format": FORMAT,
            "model_sha256": self.model_sha256,
            "runtime": self.runtime_facts,
            "inputs": asdict(self.inputs),
            "samples": len(self.observations),
            "tensors": self.tensors,
            "notes": list(self.notes),
        }
        if any(signature is not None or continues for signature, continues in self.steps):
            facts["steps"] = [{"signature": signature, "continues": continues} for signature, continues in self.steps]
        if self.unwritten is not None:
            facts["unwritten"] = named_tensors(self.unwritten)
        return json.dumps(facts, sort_keys=True)


def named_tensors(tensors: Sequence[tuple[str | None, int]]) -> list[dict[str, Any]]:
    """Return tensors with their signatures, as documents have them."""
    return [{"signature": signature, "tensor": tensor} for signature, tensor in tensors]


def tensors_of(named: object, place: str) -> tuple[tuple[str | None, int], ...] | None:
    """Return what `named_tensors` wrote, or None. Raise a GoldenError for anything else."""
    if named is None:
        return None
    if not isinstance(named, list):
        raise GoldenError(f"{place}: expected a list, got {named!r:.80}")
    for one in named:
        known = isinstance(one, Mapping) and set(one) == {"signature", "tensor"}
        if not known or not isinstance(one["signature"], (str, type(None))) or type(one["tensor"]) is not int:
            raise GoldenError(f"{place}: a tensor has a signature and an index, got {one!r:.80}")
    return tuple((one["signature"], one["tensor"]) for one in named)


def prefix(signature: str | None) -> str:
    """Return the beginning of the names of an archive's entries for a signature's samples."""
    return "" if signature is None else quote(signature, safe="", errors="surrogateescape") + "/"


def fit(golden: Golden, parts: Sequence[Signed]) -> Golden:
    """Return `golden` with its arrays in the types and shapes that kernels use for the signatures' tensors.

    Shapes of results are not checked here: some are known only at run time.

    Raises:
        GoldenError: It has another number of inputs or outputs, or tensors that the model lacks.
        TypeMismatchError, ShapeError, InputError: An array does not fit its tensor.
    """
    observations = golden.observations
    if isinstance(observations, Stored):
        return replace(golden, observations=observations.mapped(lambda observation, k: _fit(observation, parts, k)))
    return replace(
        golden, observations=tuple(_fit(observation, parts, k) for k, observation in enumerate(observations))
    )


def _fit(observation: Observation, parts: Sequence[Signed], k: int) -> Observation:
    graph = view(parts[named(parts, observation.signature)].model)
    inputs, outputs = observation.inputs, observation.outputs
    if len(inputs) != len(graph.inputs):
        raise GoldenError(f"sample {k}: expected {len(graph.inputs)} inputs, got {len(inputs)}")
    if len(outputs) > len(graph.outputs):
        raise GoldenError(f"sample {k}: expected {len(graph.outputs)} outputs, got {len(outputs)}")
    unknown = next((tensor for tensor in observation.tensors if not 0 <= tensor < len(graph.tensors)), None)
    if unknown is not None:
        raise GoldenError(f"sample {k}: tensor {unknown} is none of the model's, which has {len(graph.tensors)}")

    def as_carried(tensor: int, value: Array, *, is_input: bool = False) -> Array:
        spec = graph.tensors[tensor]
        return admit(value, spec.type, open_shape(spec) if is_input else None, f"sample {k}, {spec.name or tensor}")

    def known(tensor: int, value: Array | None) -> Array | None:
        return None if value is None else as_carried(tensor, value)

    absent = (None,) * (len(graph.outputs) - len(outputs))
    return replace(
        observation,
        inputs=tuple(as_carried(t, v, is_input=True) for t, v in zip(graph.inputs, inputs, strict=True)),
        outputs=tuple(known(t, v) for t, v in zip(graph.outputs, (*outputs, *absent), strict=True)),
        tensors=MappingProxyType({tensor: known(tensor, value) for tensor, value in observation.tensors.items()}),
    )
