"""Goldens: recorded results of a runtime, for comparison without that runtime; and their `.npz` archives.

Entry `tflq_golden` of an archive is JSON: format, model_sha256, runtime, inputs, samples, tensors. Sample k has
`s<k>_in<i>` and `s<k>_out<i>` and, if all tensors were recorded, `s<k>_t<index>`. An archive without `tflq_golden` has
no provenance. Bundles (`tflq/verification/bundle.py`) are another form.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count, takewhile
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.display import displayed_by
from tflq.errors import GoldenError, InputError, LimitError
from tflq.interpreter.arrays import admit, open_shape
from tflq.ir import Model, view
from tflq.runtimes import Description
from tflq.runtimes.transport import pack, unpack
from tflq.storage.archive import Archive, opened, write_arrays
from tflq.verification.results import InputFacts

Array = NDArray[Any]
FORMAT, PROVENANCE = "tflq-golden/1", "tflq_golden"
_ENTRY = re.compile(r"s(?P<sample>\d{1,9})_(?P<kind>in|out|t)(?P<index>\d{1,9})(\.lengths)?", re.ASCII)
_ABSENT = 1000  # outputs of a sample that may have no value
#: Types of the provenance's values; a tuple of one means lists.
_FACTS: Mapping[str, type | tuple[type]] = {
    "model_sha256": str,
    "runtime": dict,
    "samples": int,
    "tensors": bool,
    "notes": (str,),
}
RUNTIME: Mapping[str, type | tuple[type]] = {
    **dict.fromkeys(
        ("name", "package", "version", "resolver", "python", "numpy", "platform", "cpu", "vectors", "delegate"), str
    ),
    **dict.fromkeys(("threads", "first_level_cache"), int),
    "delegated": (int,),
}
EMPTY: Mapping[int, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One sample of a runtime's run. `tensors` holds operator results by tensor index, if they were recorded.

    A value that the runtime does not hold is None.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array | None, ...]
    tensors: Mapping[int, Array | None] = field(default_factory=lambda: EMPTY)


class Stored(Sequence[Observation]):
    """Observations that are read on demand, and kept nowhere.

    `read` takes the number of a sample, and a flag that requests the operators' results.
    """

    def __init__(self, count: int, read: Callable[[int, bool], Observation], *, whole: bool = True) -> None:
        self._count, self._read, self._whole = count, read, whole

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
        return Stored(self._count, self._read, whole=False)

    def chosen(self, numbers: Sequence[int]) -> Stored:
        """Return some of the observations, by number."""
        return Stored(len(numbers), lambda k, whole: self._read(numbers[k], whole), whole=self._whole)

    def mapped(self, change: Callable[[Observation, int], Observation]) -> Stored:
        """Return the observations, each changed when it is read."""
        return Stored(self._count, lambda k, whole: change(self._read(k, whole), k), whole=self._whole)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A bound on an operator's differences in LSB (ULP of floats), valid until `expires` (YYYY-MM-DD), and the reason.

    `operator` is a name, an index, or "*" for all.
    """

    operator: str
    steps: int
    reason: str
    expires: str


@displayed_by("record:golden_card")
@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    """A runtime's recorded results of a model. `tensors` is True if observations hold all operators' results.

    `runtime` and `model_sha256` are empty for an archive without them.
    """

    observations: Sequence[Observation]
    tensors: bool
    inputs: InputFacts
    runtime: Description | Mapping[str, object]
    model_sha256: str = ""
    notes: tuple[str, ...] = ()
    tolerances: tuple[Tolerance, ...] = ()

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
        return replace(self, observations=(), tensors=whole, notes=notes, tolerances=tolerances)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an `.npz` archive, which has no tolerances. Equal goldens give equal bytes."""
        entries: dict[str, Array] = {PROVENANCE: np.frombuffer(self._provenance().encode(), np.uint8)}
        for k, observation in enumerate(self.observations):
            for i, value in enumerate(observation.inputs):
                entries |= pack(f"s{k}_in{i}", value)
            for i, output in enumerate(observation.outputs):
                entries |= pack(f"s{k}_out{i}", output) if output is not None else {}
            for index, tensor in sorted(observation.tensors.items()):
                entries |= pack(f"s{k}_t{index}", tensor) if tensor is not None else {}
        write_arrays(path, entries, compress=True)

    def _provenance(self) -> str:
        runtime = asdict(self.runtime) if isinstance(self.runtime, Description) else dict(self.runtime)
        facts = {
            "format": FORMAT,
            "model_sha256": self.model_sha256,
            "runtime": runtime,
            "inputs": asdict(self.inputs),
            "samples": len(self.observations),
            "tensors": self.tensors,
            "notes": list(self.notes),
        }
        return json.dumps(facts, sort_keys=True)


def load_archive(path: str | os.PathLike[str]) -> Golden:
    """Read an `.npz` archive. Raise GoldenError if it is not one, FileAccessError if it cannot be read."""
    try:
        with opened(path) as archive:
            return _golden(os.fspath(path), archive)
    except (InputError, LimitError) as error:
        raise GoldenError(str(error)) from error


def model_of_archive(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of an archive's model; "" if it names none. Raise as `load_archive`."""
    with opened(path) as archive:
        return str(_facts(archive, os.fspath(path)).get("model_sha256", ""))


def _golden(path: str, archive: Archive) -> Golden:
    facts = _facts(archive, path)
    samples = _samples(archive)
    if not samples and not facts:
        raise GoldenError(f"{path}: is not a golden: it has no entries s0_out0 ...; for a dump use tflq explain --dump")
    if not samples or facts.get("samples", len(samples)) != len(samples):
        raise GoldenError(f"{path}: expected {facts.get('samples', 'some')} samples, got {len(samples)}")
    observations = tuple(_observation(archive, k, indices) for k, indices in enumerate(samples))
    if not any(observation.outputs for observation in observations):
        raise GoldenError(f"{path}: has no outputs (entries s0_out0 ...)")
    return Golden(
        observations=observations,
        tensors=facts.get("tensors", False),
        inputs=InputFacts(path, None, len(samples)),
        runtime=facts.get("runtime", {}),
        model_sha256=facts.get("model_sha256", ""),
        notes=tuple(facts.get("notes", ())),
    )


def fitted(golden: Golden, model: Model) -> Golden:
    """Return `golden` with its arrays in the types and shapes that kernels use for the model's tensors.

    Shapes of results are not checked here: some are known only at run time.

    Raises:
        GoldenError: It has another number of inputs or outputs, or tensors that the model lacks.
        TypeMismatchError, ShapeError, InputError: An array does not fit its tensor.
    """
    observations = golden.observations
    if isinstance(observations, Stored):
        return replace(golden, observations=observations.mapped(lambda observation, k: _fitted(observation, model, k)))
    return replace(
        golden, observations=tuple(_fitted(observation, model, k) for k, observation in enumerate(observations))
    )


def _fitted(observation: Observation, model: Model, k: int) -> Observation:
    graph = view(model)
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
    return Observation(
        inputs=tuple(as_carried(t, v, is_input=True) for t, v in zip(graph.inputs, inputs, strict=True)),
        outputs=tuple(known(t, v) for t, v in zip(graph.outputs, (*outputs, *absent), strict=True)),
        tensors=MappingProxyType({tensor: known(tensor, value) for tensor, value in observation.tensors.items()}),
    )


def _facts(archive: Archive, path: str) -> dict[str, Any]:
    """Return the archive's provenance: empty, or values of the types that `Golden.save` writes."""
    if PROVENANCE not in archive:
        return {}
    facts = archive.document(PROVENANCE)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        version = facts.get("format", "none") if isinstance(facts, dict) else facts
        raise GoldenError(f"{path}: expected format {FORMAT}, got {version!r:.80}")
    check_types(facts, _FACTS, path)
    check_types(facts.get("runtime", {}), RUNTIME, f"{path}: runtime")
    return facts


def check_types(facts: Mapping[str, Any], types: Mapping[str, type | tuple[type]], place: str) -> None:
    """Refuse values of other types; a tuple of one type means a list of such values."""
    for name, kind in types.items():
        value = facts.get(name)
        values, kind = (value, kind[0]) if isinstance(kind, tuple) and isinstance(value, list) else ([value], kind)
        if name in facts and not all(type(item) is kind for item in values):
            raise GoldenError(f"{place}: the provenance has a value of another kind under {name}: {value!r:.80}")


def _samples(archive: Archive) -> list[dict[str, set[int]]]:
    """Return the inputs ("in"), outputs ("out") and tensors ("t") of samples 0, 1, ... without a gap."""
    samples: dict[int, dict[str, set[int]]] = {}
    for name in archive:
        entry = _ENTRY.fullmatch(name)
        if entry:
            kinds = samples.setdefault(int(entry["sample"]), {"in": set(), "out": set(), "t": set()})
            kinds[entry["kind"]].add(int(entry["index"]))
    found = [samples[k] for k in takewhile(samples.__contains__, count())]
    if found and len(found) < len(samples):
        raise GoldenError(f"{archive.source}: holds entries of sample {max(samples)}, but none of sample {len(found)}")
    return found


def _observation(archive: Archive, k: int, indices: Mapping[str, set[int]]) -> Observation:
    inputs = tuple(unpack(f"s{k}_in{i}", archive) for i in range(len(indices["in"])))
    if any(value is None for value in inputs):
        raise GoldenError(f"{archive.source}: sample {k} lacks an input")
    outputs_end = max(indices["out"], default=-1) + 1
    if outputs_end > len(indices["out"]) + _ABSENT:
        raise GoldenError(f"{archive.source}: entry s{k}_out{outputs_end - 1} is far beyond the other outputs")
    outputs = tuple(unpack(f"s{k}_out{i}", archive) for i in range(outputs_end))
    tensors = {index: unpack(f"s{k}_t{index}", archive) for index in sorted(indices["t"])}
    return Observation(tuple(v for v in inputs if v is not None), outputs, MappingProxyType(tensors))
