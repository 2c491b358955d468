"""Read goldens in single `.npz` archives.

Entry `tflq_golden` is JSON: format, model_sha256, runtime, inputs, samples, tensors and, for samples of signatures or
that continue, `steps`: signature and continues of each sample. Sample k has `s<k>_in<i>` and `s<k>_out<i>` and, if all
tensors were recorded, `s<k>_t<index>`; names of a signature's samples begin with its quoted name and a slash. An
archive without `tflq_golden` has no provenance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import count, takewhile
from types import MappingProxyType
from typing import Any

from tflq.comparison.verification.golden import FORMAT, PROVENANCE, Golden, Observation, prefix, tensors_of
from tflq.comparison.verification.results import InputFacts
from tflq.engine.runtimes.transport import unpack
from tflq.errors import GoldenError, InputError, LimitError
from tflq.model.storage.archive import Archive, opened

_ENTRY = re.compile(
    r"(?P<prefix>[^/]+/)?s(?P<sample>\d{1,9})_(?P<kind>in|out|t)(?P<index>\d{1,9})(\.lengths)?", re.ASCII
)
_ABSENT = 1000  # outputs of a sample that may have no value
#: Types of the provenance's values; a tuple of one means lists.
_FACTS: Mapping[str, type | tuple[type]] = {
    "model_sha256": str,
    "runtime": dict,
    "samples": int,
    "tensors": bool,
    "notes": (str,),
    "steps": (dict,),
}
RUNTIME: Mapping[str, type | tuple[type]] = {
    **dict.fromkeys(
        ("name", "package", "version", "resolver", "python", "numpy", "platform", "cpu", "vectors", "delegate"), str
    ),
    **dict.fromkeys(("threads", "first_level_cache"), int),
    "delegated": (int,),
}


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
    steps = [step_of(step, f"{path}: steps") for step in facts.get("steps", ())]
    samples = _samples(archive, [prefix(signature) for signature, _ in steps])
    if not samples and not facts:
        raise GoldenError(f"{path}: is not a golden: it has no entries s0_out0 ...; for a dump use tflq explain --dump")
    if not samples or facts.get("samples", len(samples)) != len(samples):
        raise GoldenError(f"{path}: expected {facts.get('samples', 'some')} samples, got {len(samples)}")
    every = enumerate(zip(samples, steps or [(None, False)] * len(samples), strict=True))
    observations = tuple(_observation(archive, k, indices, *step) for k, (indices, step) in every)
    if not any(observation.outputs for observation in observations):
        raise GoldenError(f"{path}: has no outputs (entries s0_out0 ...)")
    return Golden(
        observations=observations,
        tensors=facts.get("tensors", False),
        inputs=InputFacts(path, None, len(samples)),
        runtime=facts.get("runtime", {}),
        model_sha256=facts.get("model_sha256", ""),
        notes=tuple(facts.get("notes", ())),
        unwritten=tensors_of(facts.get("unwritten"), f"{path}: unwritten"),
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


def step_of(step: Mapping[str, Any], place: str) -> tuple[str | None, bool]:
    """Return the signature that a step ran and whether it continues. Raise a GoldenError if they are not that."""
    signature, continues = step.get("signature"), step.get("continues", False)
    if not (signature is None or isinstance(signature, str)) or not isinstance(continues, bool):
        raise GoldenError(f"{place}: a step has a signature and continues, got {step!r:.80}")
    return signature, continues


def _samples(archive: Archive, starts: Sequence[str]) -> list[dict[str, set[int]]]:
    """Return the inputs ("in"), outputs ("out") and tensors ("t") of samples 0, 1, ... without a gap.

    `starts` are the beginnings of the names of each sample's entries, if the archive names signatures; such a sample
    may have no entries.
    """
    samples: dict[int, dict[str, set[int]]] = {k: {"in": set(), "out": set(), "t": set()} for k in range(len(starts))}
    for name in archive:
        entry = _ENTRY.fullmatch(name)
        if entry:
            k, start = int(entry["sample"]), entry["prefix"] or ""
            if start != (starts[k] if k < len(starts) else ""):
                raise GoldenError(f"{archive.source}: entry {name!r:.80} is not of the signature of sample {k}")
            kinds = samples.setdefault(k, {"in": set(), "out": set(), "t": set()})
            kinds[entry["kind"]].add(int(entry["index"]))
    found = [samples[k] for k in takewhile(samples.__contains__, count())]
    if found and len(found) < len(samples):
        raise GoldenError(f"{archive.source}: holds entries of sample {max(samples)}, but none of sample {len(found)}")
    return found


def _observation(
    archive: Archive, k: int, indices: Mapping[str, set[int]], signature: str | None, continues: bool
) -> Observation:
    start = f"{prefix(signature)}s{k}_"
    inputs = tuple(unpack(f"{start}in{i}", archive) for i in range(len(indices["in"])))
    if any(value is None for value in inputs):
        raise GoldenError(f"{archive.source}: sample {k} lacks an input")
    outputs_end = max(indices["out"], default=-1) + 1
    if outputs_end > len(indices["out"]) + _ABSENT:
        raise GoldenError(f"{archive.source}: entry {start}out{outputs_end - 1} is far beyond the other outputs")
    outputs = tuple(unpack(f"{start}out{i}", archive) for i in range(outputs_end))
    tensors = {index: unpack(f"{start}t{index}", archive) for index in sorted(indices["t"])}
    given = tuple(v for v in inputs if v is not None)
    return Observation(given, outputs, MappingProxyType(tensors), signature, continues)
