"""Goldens: recorded results of a runtime, for comparison without that runtime; and their `.npz` archives.

Choose the signatures that a runtime can run, and those that a recording holds.

Entry `tflq_golden` of an archive is JSON: format, model_sha256, runtime, inputs, samples, tensors. Sample k has
`s<k>_in<i>` and `s<k>_out<i>` and, if all tensors were recorded, `s<k>_t<index>`. An archive without `tflq_golden` has
no provenance. Bundles (`tflq/comparison/goldens/stored.py`) are another form.

The profile of the runtime that a recording comes from.

The processor that a runtime ran on, and that of a profile.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np

from tflq.comparison.results import InputFacts
from tflq.engine.interpreter.evaluation import admit, open_shape
from tflq.engine.kernels.families.custom_options import refuse_compiled
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.runtimes import Description, Runtime
from tflq.engine.runtimes.runtime import pack
from tflq.errors import GoldenError, OptionError, UnknownNameError
from tflq.model.ir import Signed, view
from tflq.model.storage.arrays import write_arrays
from tflq.texts import Documented, Statement, display_by
from tflq.typing import Array


def runnable(parts: Sequence[Signed], runtime: Runtime) -> tuple[Signed, ...]:
    """Return the signatures that a runtime can run: of some runtimes, only one of the first subgraph.

    Raises:
        OptionError: It can run none of them.
        UnsupportedError: A custom operator holds code that was compiled for an accelerator.
    """
    for part in parts:
        refuse_compiled(view(part.model))
    if getattr(runtime, "signatures", True) or all(part.signature is None for part in parts):
        return tuple(parts)
    first = next((part for part in parts if part.root.subgraph == 0), None)
    if first is None:
        names = ", ".join(part.name for part in parts)
        raise OptionError(
            f"{runtime.name} runs the first subgraph of a model only, not {names}: choose another runtime"
        )
    return (replace(first, is_first=True),)


def parts_named(parts: Sequence[Signed], signature: str | None) -> int:
    """Return the position of the signature that a recorded step ran; None means the first subgraph.

    Raises:
        GoldenError: The model has no such signature.
    """
    for k, part in enumerate(parts):
        if part.root.signature == signature:
            return k
    first = next((k for k, part in enumerate(parts) if part.root.subgraph == 0), None)
    if signature is None and first is not None:
        return first
    raise GoldenError(f"holds steps of signature {signature!r}, which the model lacks")


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


class StoredTensor(Sequence[Observation]):
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

    def plain(self) -> StoredTensor:
        """Return these observations without the operators' results."""
        return StoredTensor(self._count, self._read, whole=False, steps=self.steps)

    def chosen(self, numbers: Sequence[int]) -> StoredTensor:
        """Return some of the observations, by number."""
        steps = [self.steps[k] for k in numbers]
        return StoredTensor(
            len(numbers), lambda k, whole: self._read(numbers[k], whole), whole=self._whole, steps=steps
        )

    def mapped(self, change: Callable[[Observation, int], Observation]) -> StoredTensor:
        """Return the observations, each changed when it is read."""
        read = lambda k, whole: change(self._read(k, whole), k)  # noqa: E731
        return StoredTensor(self._count, read, whole=self._whole, steps=self.steps)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A bound on an operator's differences in LSB (ULP of floats), valid until `expires` (YYYY-MM-DD), and the reason.

    `operator` is a name, an index, or "*" for all.
    """

    operator: str
    steps: int
    reason: str
    expires: str


@display_by("golden:golden_card", "record_document")
@dataclass(frozen=True, slots=True, eq=False)
class Golden(Documented):
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
        if isinstance(self.observations, StoredTensor):
            return self.observations.steps
        return tuple((one.signature, one.continues) for one in self.observations)

    @property
    def runtime_facts(self) -> dict[str, Any]:
        """The runtime's facts by name; empty for an archive without them."""
        return asdict(self.runtime) if isinstance(self.runtime, Description) else dict(self.runtime)

    def plain(self) -> Golden:
        """Return the golden without the operators' results, which are then not even read."""
        observations = self.observations
        if isinstance(observations, StoredTensor):
            return replace(self, observations=observations.plain(), tensors=False)
        return replace(self, observations=tuple(replace(one, tensors=EMPTY) for one in observations), tensors=False)

    def chosen(self, numbers: Sequence[int]) -> Golden:
        """Return the golden with these samples only."""
        observations = self.observations
        some = (
            observations.chosen(numbers)
            if isinstance(observations, StoredTensor)
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
        save_archive(path, [self])

    def provenance(self, steps: Sequence[tuple[str | None, bool]]) -> str:
        """Return the facts of an archive with samples of these steps."""
        facts: dict[str, Any] = {
            "format": FORMAT,
            "model_sha256": self.model_sha256,
            "runtime": self.runtime_facts,
            "inputs": asdict(self.inputs),
            "samples": len(steps),
            "tensors": self.tensors,
            "notes": list(self.notes),
        }
        if any(signature is not None or continues for signature, continues in steps):
            facts["steps"] = [{"signature": signature, "continues": continues} for signature, continues in steps]
        if self.unwritten is not None:
            facts["unwritten"] = named_tensors(self.unwritten)
        return json.dumps(facts, sort_keys=True)


def save_archive(path: str | os.PathLike[str], parts: Iterable[Golden]) -> None:
    """Write goldens of one model, whose samples follow each other, as one archive.

    Parts may be produced during writing; no more than one is kept.
    """
    write_arrays(path, _entries(parts), compress=True)


def _entries(parts: Iterable[Golden]) -> Iterator[tuple[str, Array]]:
    """Yield an archive's entries; the last one has the facts of all parts together."""
    steps: list[tuple[str | None, bool]] = []
    whole: Golden | None = None
    for part in parts:
        whole = (whole or part).together(part)
        for observation in part.observations:
            start = f"{prefix(observation.signature)}s{len(steps)}_"
            values = [(f"in{i}", value) for i, value in enumerate(observation.inputs)]
            values += [(f"out{i}", value) for i, value in enumerate(observation.outputs) if value is not None]
            values += [(f"t{t}", value) for t, value in sorted(observation.tensors.items()) if value is not None]
            for name, value in values:
                yield from pack(start + name, value).items()
            steps.append((observation.signature, observation.continues))
    assert whole is not None  # there is at least one part
    yield PROVENANCE, np.frombuffer(whole.provenance(steps).encode(), np.uint8)


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
    if isinstance(observations, StoredTensor):
        return replace(golden, observations=observations.mapped(lambda observation, k: _fit(observation, parts, k)))
    return replace(
        golden, observations=tuple(_fit(observation, parts, k) for k, observation in enumerate(observations))
    )


def _fit(observation: Observation, parts: Sequence[Signed], k: int) -> Observation:
    graph = view(parts[parts_named(parts, observation.signature)].model)
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


#: Prefixes of the names of profiles for a package's releases.
_FAMILIES = {
    "ai-edge-litert": "litert",
    "ai-edge-litert-nightly": "litert",
    "tflite-runtime": "tflite",
    "tensorflow": "tflite",
}
#: Suffixes of the names of profiles for LiteRT's resolvers, by the last part of a runtime's name.
_RESOLVERS = ("ref", "opt", "xnnpack")
_RELEASE = re.compile(r"[a-z]+-\d+\.\d+-[a-z]+")


def counterpart(runtime: Description | Mapping[str, object]) -> tuple[Profile, str]:
    """Return the profile of a runtime, and a note that names the compared profile if its release has none.

    `runtime` is the description of a run, or that in a golden file. The profile is that of the processor's vector
    extension if there is one. Where XNNPACK was given no operator, the built-in kernels ran.
    """
    name, package, version, machine, vectors = _facts(runtime)
    if name.endswith("-xnnpack") and _took_nothing(runtime):
        name = name.removesuffix("xnnpack") + "opt"
    resolver = name.rpartition("-")[2]
    release = ".".join(version.split(".")[:2])
    exact = f"{_FAMILIES.get(package, package)}-{release}-{resolver}"
    arm = [f"{candidate}-arm64" for candidate in (exact, name)] if "aarch64" in machine or "arm64" in machine else []
    for candidate in (*arm, exact, name):
        profile = _known(candidate)
        if profile is not None:
            family = vectors.lower().replace("-", "").partition(" ")[0]
            return _known(f"{profile.name}-{family}") or profile, ""
    profile = _nearest(package, release, resolver)
    if not name:
        return profile, ""
    said = f"{name} {version}".strip()
    note = f"there is no profile of {said}: {profile.name} is compared; --profile names another"
    return profile, Statement(note, "nearest-profile", runtime=name, version=version, profile=profile.name)


def _nearest(package: str, release: str, resolver: str) -> Profile:
    """Return the profile of the nearest release of a package with a resolver; without one, the newest LiteRT's."""
    family = _FAMILIES.get(package, package)
    names = (name for name in PROFILES if _RELEASE.fullmatch(name))
    rivals = [name for name in names if name.startswith(f"{family}-") and name.endswith(f"-{resolver}")]
    if rivals and release:
        return by_name(min(rivals, key=lambda name: abs(_number(name.split("-")[1]) - _number(release))))
    return by_name(f"litert-{resolver}" if resolver in _RESOLVERS else "litert-ref")


def _number(release: str) -> float:
    """Return a release as a number that is larger for later ones; infinity if it is not written as two numbers."""
    major, _, minor = release.partition(".")
    return int(major) * 1000 + int(minor) if major.isdecimal() and minor.isdecimal() else float("inf")


def own_profile(runtime: Description | Mapping[str, object]) -> Profile | None:
    """Return the profile of exactly this runtime; None if its release has none, or the runtime is not named."""
    profile, note = counterpart(runtime)
    return None if note or not _facts(runtime)[0] else profile


def _facts(runtime: Description | Mapping[str, object]) -> tuple[str, str, str, str, str]:
    """Return name, package, version, platform and vector extension."""
    if not isinstance(runtime, Mapping):
        return runtime.name, runtime.package, runtime.version, runtime.platform.lower(), runtime.vectors
    keys = ("name", "package", "version", "platform", "vectors")
    name, package, version, platform, vectors = (str(runtime.get(key) or "") for key in keys)
    return name, package, version, platform.lower(), vectors


def _took_nothing(runtime: Description | Mapping[str, object]) -> bool:
    """Return whether the delegate is recorded to have taken no partition of any model."""
    counts = runtime.get("delegated") if isinstance(runtime, Mapping) else runtime.delegated
    return isinstance(counts, (list, tuple)) and len(counts) > 0 and not any(counts)


def _known(name: str) -> Profile | None:
    try:
        return by_name(name)
    except UnknownNameError:
        return None


def match(profile: Profile, runtime: Description | Mapping[str, object]) -> tuple[Profile, str]:
    """Return the profile with the first-level cache of the runtime's processor, and a note on another vector extension.

    `runtime` is the description of a run, or that in a golden file. The note is empty if the extensions are the same,
    if one of them is unknown, or if the profile's results do not depend on one.
    """
    facts = runtime if isinstance(runtime, Mapping) else {name: getattr(runtime, name) for name in _FACTS}
    vectors, cache, system = (facts.get(name) for name in _FACTS)
    is_x86 = profile.source.cpu.startswith("x86-64") and str(system).lower().endswith(("x86_64", "amd64"))
    if is_x86 and isinstance(cache, int) and cache > 0:
        profile = profile.with_first_level_cache(cache)
    expected = profile.source.vectors
    if not (is_x86 and expected and vectors) or vectors == expected:
        return profile, ""
    text = f"profile: {expected}; here: {vectors}: results of float operators may differ"
    return profile, Statement(text, "other-vectors", profile=profile.name, expected=expected, here=vectors)


_FACTS = ("vectors", "first_level_cache", "platform")
