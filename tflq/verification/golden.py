"""Golden files: what a runtime produced, kept so that it can be compared without that runtime.

An `.npz` archive. Entry `tflq_golden` is UTF-8 JSON: format, model_sha256, runtime, inputs, samples, tensors. Sample k
has `s<k>_in<i>` and `s<k>_out<i>` in the interpreter's order and, where all tensors were recorded, `s<k>_t<index>`.
An archive without `tflq_golden` is read too, when it has numbered inputs and outputs: nothing is then known about it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FileAccessError, GoldenError, InputError
from tflq.runtimes import Description
from tflq.runtimes.transport import pack, unpack
from tflq.verification.inputs import load_npz, numbered
from tflq.verification.results import InputFacts

Array = NDArray[Any]
FORMAT = "tflq-golden/1"
_EMPTY: Mapping[int, Array] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """One sample as a runtime ran it. `tensors` holds operator results by tensor index, if they were asked for.

    A value that the runtime does not hold is None.
    """

    inputs: tuple[Array, ...]
    outputs: tuple[Array | None, ...]
    tensors: Mapping[int, Array | None] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True, eq=False)
class Golden:
    """What a runtime made of a model. `tensors` says whether observations hold all of the operators' results.

    `runtime` and `model_sha256` are empty for an archive that does not say them.
    """

    observations: tuple[Observation, ...]
    tensors: bool
    inputs: InputFacts
    runtime: Description | Mapping[str, object]
    model_sha256: str = ""
    notes: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it. Equal goldens give equal bytes."""
        entries: dict[str, Array] = {"tflq_golden": np.frombuffer(self._provenance().encode(), np.uint8)}
        for k, observation in enumerate(self.observations):
            for i, value in enumerate(observation.inputs):
                entries |= pack(f"s{k}_in{i}", value)
            for i, output in enumerate(observation.outputs):
                entries |= pack(f"s{k}_out{i}", output) if output is not None else {}
            for index, tensor in sorted(observation.tensors.items()):
                entries |= pack(f"s{k}_t{index}", tensor) if tensor is not None else {}
        try:
            with open(path, "wb") as file:
                np.savez_compressed(file, **entries)  # type: ignore[arg-type]
        except OSError as error:
            raise FileAccessError(path, error.strerror or str(error)) from error

    def _provenance(self) -> str:
        runtime = asdict(self.runtime) if isinstance(self.runtime, Description) else dict(self.runtime)
        facts = {
            "format": FORMAT, "model_sha256": self.model_sha256, "runtime": runtime, "inputs": asdict(self.inputs),
            "samples": len(self.observations), "tensors": self.tensors, "notes": list(self.notes),
        }  # fmt: skip
        return json.dumps(facts, sort_keys=True)


def load_golden(path: str | os.PathLike[str]) -> Golden:
    """Read a golden file. Raises GoldenError where it is none, FileAccessError where it cannot be read."""
    try:
        entries = load_npz(Path(path))
    except InputError as error:
        raise GoldenError(str(error)) from error
    facts = _facts(entries, path)
    samples = len(numbered(entries))
    if not samples or facts.get("samples", samples) != samples:
        raise GoldenError(f"{os.fspath(path)}: expected {facts.get('samples', 'some')} samples, got {samples}")
    observations = tuple(_observation(entries, k) for k in range(samples))
    if not any(observation.outputs for observation in observations):
        raise GoldenError(f"{os.fspath(path)}: has no outputs (entries s0_out0 ...)")
    return Golden(
        observations=observations,
        tensors=facts.get("tensors") is True,
        inputs=InputFacts(os.fspath(path), None, samples),
        runtime=facts["runtime"] if isinstance(facts.get("runtime"), dict) else {},
        model_sha256=str(facts.get("model_sha256", "")),
        notes=tuple(str(note) for note in facts.get("notes", ())),
    )


def _facts(entries: dict[str, Array], path: str | os.PathLike[str]) -> dict[str, Any]:
    text = entries.pop("tflq_golden", None)
    if text is None:
        return {}
    try:
        facts = json.loads(text.tobytes().decode())
    except ValueError as error:
        raise GoldenError(f"{os.fspath(path)}: unreadable provenance ({error})") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise GoldenError(f"{os.fspath(path)}: expected format {FORMAT}, got {facts.get('format', facts)!r:.80}")
    return facts


def _observation(entries: Mapping[str, Array], k: int) -> Observation:
    names = {name.partition(".")[0] for name in entries if name.startswith(f"s{k}_")}

    def sequence(kind: str) -> tuple[Array | None, ...]:
        numbers = [int(n.removeprefix(f"s{k}_{kind}")) for n in names if n.removeprefix(f"s{k}_{kind}").isdigit()]
        return tuple(unpack(f"s{k}_{kind}{i}", entries) for i in range(max(numbers, default=-1) + 1))

    inputs = sequence("in")
    if any(value is None for value in inputs):
        raise GoldenError(f"sample {k} lacks an input")
    indices = sorted(int(n.removeprefix(f"s{k}_t")) for n in names if n.removeprefix(f"s{k}_t").isdigit())
    tensors = {index: unpack(f"s{k}_t{index}", entries) for index in indices}
    return Observation(tuple(v for v in inputs if v is not None), sequence("out"), MappingProxyType(tensors))
