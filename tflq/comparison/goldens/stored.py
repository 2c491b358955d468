"""Goldens at any path: `.npz` archives, and bundles in a folder, a zip or at a URL.

Read goldens in single `.npz` archives.

Entry `tflq_golden` is JSON: format, model_sha256, runtime, inputs, samples, tensors and, for samples of signatures or
that continue, `steps`: signature and continues of each sample. Sample k has `s<k>_in<i>` and `s<k>_out<i>` and, if all
tensors were recorded, `s<k>_t<index>`; names of a signature's samples begin with its quoted name and a slash. An
archive without `tflq_golden` has no provenance.

Golden bundles: a folder, a zip archive or a URL with manifest.json, samples.jsonl and data/DIGEST.npy.

docs/golden-format.md describes the format, schemas/golden.schema.json the manifest. Arrays are named by their contents,
so that equal ones are stored once; samples are written and read one at a time.

Build goldens from goldens: merge them, and prune unneeded parts.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from itertools import count, takewhile
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from tflq.comparison.goldens.golden import (
    EMPTY,
    FORMAT,
    PROVENANCE,
    Golden,
    Observation,
    StoredTensor,
    Tolerance,
    counterpart,
    named_tensors,
    prefix,
    save_archive,
    tensors_of,
)
from tflq.comparison.goldens.manifest import GoldenDocument
from tflq.comparison.inspection.difference import digest_of, same_bits
from tflq.comparison.results import InputFacts
from tflq.engine.runtimes import Description
from tflq.engine.runtimes.runtime import pack, unpack
from tflq.errors import FileAccessError, GoldenError, InputError, LimitError, TflqError
from tflq.model.storage.arrays import Archive, digest, opened, read_elements, read_header
from tflq.model.storage.documents import BYTES, check_size, read_json
from tflq.model.storage.kinds import open_file
from tflq.model.storage.output import PathLike, check_apart, check_outputs
from tflq.model.storage.stores import (
    Sink,
    Store,
    check_folder,
    check_remote,
    is_url,
    is_zip,
    local_path,
    open_store,
    write_store,
)
from tflq.typing import Array

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


def load_archive(path: str | os.PathLike[str], *, on_demand: bool = False) -> Golden:
    """Read an `.npz` archive, its samples all at once or `on_demand`.

    Raise GoldenError if it is not one, FileAccessError if it cannot be read.
    """
    with _archive(path, streamed=on_demand) as archive:
        return _golden(os.fspath(path), archive, on_demand)


@contextmanager
def _archive(path: str | os.PathLike[str], *, streamed: bool) -> Iterator[Archive]:
    try:
        with opened(path, streamed=streamed) as archive:
            yield archive
    except (InputError, LimitError) as error:
        raise GoldenError(str(error)) from error


def model_of_archive(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of an archive's model; "" if it names none. Raise as `load_archive`."""
    with opened(path) as archive:
        return str(_facts(archive, os.fspath(path)).get("model_sha256", ""))


def _golden(path: str, archive: Archive, on_demand: bool) -> Golden:
    facts = _facts(archive, path)
    steps = [step_of(step, f"{path}: steps") for step in facts.get("steps", ())]
    samples = _samples(archive, [prefix(signature) for signature, _ in steps])
    if not samples and not facts:
        raise GoldenError(f"{path}: is not a golden: it has no entries s0_out0 ...; for a dump use tflq explain --dump")
    if not samples or facts.get("samples", len(samples)) != len(samples):
        raise GoldenError(f"{path}: expected {facts.get('samples', 'some')} samples, got {len(samples)}")
    if not any(indices["out"] for indices in samples):
        raise GoldenError(f"{path}: has no outputs (entries s0_out0 ...)")
    every = list(zip(samples, steps or [(None, False)] * len(samples), strict=True))

    def read(k: int, whole: bool) -> Observation:
        indices, step = every[k]
        with _archive(path, streamed=True) as again:
            return _observation(again, k, indices if whole else {**indices, "t": set()}, *step)

    observations: Sequence[Observation]
    if on_demand:
        observations = StoredTensor(len(every), read, steps=[step for _, step in every])
    else:
        observations = tuple(_observation(archive, k, indices, *step) for k, (indices, step) in enumerate(every))
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


SCHEMA = "tflq/golden/1"
MANIFEST, SAMPLES = "manifest.json", "samples.jsonl"
#: Limit on bytes of all sample rows, which are kept, and length of the shortest row: one without a value.
_ROWS_BYTES = 256 << 20
_SHORTEST_ROW = len('{"inputs":[],"outputs":[],"tensors":{}}')
_DIGEST = re.compile(r"[0-9a-f]{32}")
_BUNDLE_FACTS: Mapping[str, type | tuple[type]] = {
    "model_sha256": str,
    "profile": str,
    "runtime": dict,
    "inputs": dict,
    "samples": int,
    "tensors": bool,
    "notes": (str,),
    "tolerances": (dict,),
}
_TOLERANCE: Mapping[str, type | tuple[type]] = {"operator": str, "steps": int, "reason": str, "expires": str}


def is_bundle(path: PathLike) -> bool:
    """Return whether a path is read as a bundle: a URL, a zip archive by its name, or a folder with a manifest."""
    path = local_path(path)
    return is_url(path) or is_zip(path) or os.path.isfile(os.path.join(path, MANIFEST))


def is_archive_of_files(path: PathLike) -> bool:
    """Return whether a path holds a zip archive without a manifest, which is a dump of files and no bundle."""
    try:
        with zipfile.ZipFile(open_file(path)) as archive:
            return MANIFEST not in archive.namelist()
    except (TflqError, zipfile.BadZipFile, OSError):
        return False


def is_bundle_name(path: PathLike) -> bool:
    """Return whether a bundle is written to a path: to a URL, a name that ends in .zip or /, or a folder.

    A file:// URL that ends in .npz is a local archive.
    """
    if is_url(path) and not (local_path(path) != os.fspath(path) and os.fspath(path).endswith(".npz")):
        return True
    path = local_path(path)
    return is_zip(path) or os.fspath(path).endswith(("/", os.sep)) or os.path.isdir(path)


# --- writing ----------------------------------------------------------------------------------------------------------


def save_bundle(path: PathLike, parts: Iterable[Golden]) -> None:
    """Write a bundle to a folder, a name that ends in .zip, or a URL. Equal goldens give equal bytes.

    Parts are goldens of one model and runtime, whose samples follow each other; they may be produced during writing.
    The first describes them all; notes and tolerances are merged.
    """
    with write_store(path, MANIFEST) as sink:
        rows, names, whole = [], set[str](), None
        for part in parts:
            whole = part if whole is None else whole.together(part)
            rows += [_row(sink, names, observation) for observation in part.observations]
        assert whole is not None  # there is at least one part
        with sink.new(SAMPLES) as file:
            file.writelines(rows)
        with sink.new(MANIFEST) as file:
            file.write(json.dumps(manifest_of(whole, len(rows)), indent=1, sort_keys=True).encode() + b"\n")


def _row(sink: Sink, names: set[str], observation: Observation) -> bytes:
    row: dict[str, Any] = {
        "inputs": [_put(sink, names, value) for value in observation.inputs],
        "outputs": [None if value is None else _put(sink, names, value) for value in observation.outputs],
        "tensors": {str(t): _put(sink, names, v) for t, v in sorted(observation.tensors.items()) if v is not None},
    }
    if observation.signature is not None:
        row["signature"] = observation.signature
    if observation.continues:
        row["continues"] = True
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def manifest_of(golden: Golden, samples: int) -> GoldenDocument:
    """Return the manifest of a bundle."""
    runtime = asdict(golden.runtime) if isinstance(golden.runtime, Description) else dict(golden.runtime)
    profile, note = counterpart(golden.runtime)
    document = {
        "schema": SCHEMA,
        "model_sha256": golden.model_sha256,
        "runtime": runtime,
        "profile": "" if note or not runtime else profile.name,
        "inputs": {**asdict(golden.inputs), "samples": samples},
        "samples": samples,
        "tensors": golden.tensors,
        "tolerances": [asdict(t) for t in golden.tolerances],
        "notes": list(golden.notes),
        **({"unwritten": named_tensors(golden.unwritten)} if golden.unwritten is not None else {}),
    }
    return cast(GoldenDocument, document)


def _put(sink: Sink, names: set[str], value: Array) -> Any:
    """Write an array unless it exists, and return its reference: a digest, or three for an array of strings."""
    parts = pack("", value)
    for part in parts.values():
        name = digest(part)
        if name not in names:
            names.add(name)
            with sink.new(_place(name)) as file:
                np.lib.format.write_array(file, part, allow_pickle=False)
    digests = {kind.lstrip("."): digest(part) for kind, part in parts.items()}
    return digests.get("", digests)


def _place(name: str) -> str:
    return f"data/{name}.npy"


# --- reading ----------------------------------------------------------------------------------------------------------


def load_bundle(path: PathLike) -> Golden:
    """Read a bundle: its manifest, and a list of its samples, whose arrays are read on demand.

    Raises:
        GoldenError: It is not a bundle, or is damaged; damage may also be found when a sample is read.
        FileAccessError: It cannot be read.
    """
    source = os.fspath(path)
    with _name(source), open_store(path) as store:
        facts = _manifest(store, source)
        rows = _rows(store, facts["samples"], source)
        steps = [_step(row) for row in rows]

    def read(k: int, whole: bool) -> Observation:
        with _name(source), open_store(path) as store:
            return _bundle_observation(store, rows[k], whole=whole)

    return Golden(
        observations=StoredTensor(len(rows), read, steps=steps),
        tensors=facts["tensors"],
        inputs=InputFacts(source, None, len(rows)),
        runtime=facts["runtime"],
        model_sha256=facts["model_sha256"],
        notes=tuple(facts["notes"]),
        tolerances=tuple(Tolerance(**t) for t in facts["tolerances"]),
        unwritten=tensors_of(facts.get("unwritten"), f"{source}: unwritten"),
    )


def manifest(path: PathLike) -> dict[str, Any]:
    """Return the manifest of a bundle. Raise as `load_bundle`."""
    source = os.fspath(path)
    with _name(source), open_store(path) as store:
        return _manifest(store, source)


@contextmanager
def _name(source: str) -> Any:
    """Raise errors in a bundle's contents with its name."""
    try:
        yield
    except GoldenError:
        raise
    except FileNotFoundError as error:
        raise GoldenError(f"{source}: has no {error}") from error
    except OSError as error:
        if isinstance(error, TflqError):
            raise
        raise FileAccessError(source, error.strerror or str(error)) from error
    except (InputError, ValueError, EOFError) as error:
        raise GoldenError(f"{source}: {error}") from error


def _manifest(store: Store, source: str) -> dict[str, Any]:
    check_size(store.size(MANIFEST), BYTES, source)
    with store.open(MANIFEST) as file:
        facts = read_json(file.read(BYTES + 1), f"{source}: {MANIFEST}")
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        schema = facts.get("schema") if isinstance(facts, dict) else facts
        raise GoldenError(f"{source}: expected a manifest of schema {SCHEMA}, got {schema!r:.80}")
    missing = [name for name in _BUNDLE_FACTS if name not in facts]
    if missing:
        raise GoldenError(f"{source}: the manifest lacks {missing[0]}")
    check_types(facts, _BUNDLE_FACTS, source)
    check_types(facts["runtime"], RUNTIME, f"{source}: runtime")
    for one in facts["tolerances"]:
        if set(one) != set(_TOLERANCE):
            raise GoldenError(f"{source}: a tolerance needs {', '.join(_TOLERANCE)}, got {', '.join(one)!r:.80}")
        check_types(one, _TOLERANCE, f"{source}: tolerances")
        date.fromisoformat(one["expires"])
        if one["steps"] < 0 or not one["reason"].strip():
            raise GoldenError(f"{source}: a tolerance of {one['operator']} without a reason, or below 0")
    return facts


def _rows(store: Store, count: int, source: str) -> list[bytes]:
    """Return a line for each sample, not yet parsed. Reading ends at the first line that cannot be one."""
    check_size(store.size(SAMPLES), _ROWS_BYTES, f"{source}: {SAMPLES}")
    with store.open(SAMPLES) as file:
        rows: list[bytes] = []
        while line := file.readline(BYTES + 1):
            check_size(len(line), BYTES, source)
            if len(line) < _SHORTEST_ROW:
                raise GoldenError(f"{source}: line {len(rows) + 1} of {SAMPLES} is not a sample")
            if len(rows) == count:
                raise GoldenError(f"{source}: expected {count} samples, got more")
            rows.append(line)
    if len(rows) != count or not rows:
        raise GoldenError(f"{source}: expected {count} samples, got {len(rows)}")
    return rows


def _parse(line: bytes) -> dict[str, Any]:
    row = read_json(line, SAMPLES)
    known = {"inputs", "outputs", "tensors"}
    if not isinstance(row, dict) or not known <= set(row) <= known | {"signature", "continues"}:
        raise ValueError("a sample has inputs, outputs and tensors, perhaps signature and continues, and nothing else")
    step_of(row, SAMPLES)
    lists = isinstance(row["inputs"], list) and isinstance(row["outputs"], list)
    if not lists or not isinstance(row["tensors"], dict) or not all(t.isdecimal() for t in row["tensors"]):
        raise ValueError("a sample's inputs and outputs are lists, its tensors are named by numbers")
    return row


def _step(line: bytes) -> tuple[str | None, bool]:
    """Return a sample's signature and whether it continues; only rows that may name them are parsed."""
    return step_of(_parse(line), SAMPLES) if b'"signature"' in line or b'"continues"' in line else (None, False)


def _bundle_observation(store: Store, line: bytes, *, whole: bool) -> Observation:
    row = _parse(line)
    tensors = {int(t): _get(store, said) for t, said in row["tensors"].items()} if whole else EMPTY
    outputs = tuple(None if said is None else _get(store, said) for said in row["outputs"])
    inputs = tuple(_get(store, said) for said in row["inputs"])
    return Observation(inputs, outputs, MappingProxyType(dict(tensors)), *step_of(row, SAMPLES))


def _get(store: Store, said: Any) -> Array:
    """Return the array of a digest, or of the digests of an array of strings."""
    if isinstance(said, str):
        return _array(store, said)
    if not isinstance(said, dict) or set(said) != {"lengths", "bytes", "shape"}:
        raise ValueError(f"not a digest: {said!r:.80}")
    value = unpack("", {f".{kind}": _array(store, name) for kind, name in said.items()})
    assert value is not None  # the lengths exist
    return value


def _array(store: Store, name: Any) -> Array:
    if not isinstance(name, str) or not _DIGEST.fullmatch(name):
        raise ValueError(f"not a digest: {name!r:.80}")
    size = store.size(_place(name))
    with store.open(_place(name)) as file:
        header = read_header(file)
        if header.size > size:
            raise ValueError(f"{_place(name)}: is too short for {header.dtype} {list(header.shape)}")
        array = read_elements(file, header)
    if digest(array) != name:
        raise ValueError(f"{_place(name)}: does not match the digest in its name")
    return array


def load_golden(path: PathLike, *, on_demand: bool = False) -> Golden:
    """Read a golden. Samples of a bundle are read on demand, those of an archive if `on_demand`.

    Raises:
        GoldenError: It is not a golden, or is damaged.
        FileAccessError: It cannot be read.

    Example:
        >>> len(tflq.load_golden("golden/recorded/digits_mobilenet_int8.npz").observations)
        4
    """
    path = local_path(path)
    return load_bundle(path) if is_bundle(path) else load_archive(path, on_demand=on_demand)


def save_golden(parts: Iterable[Golden], path: PathLike) -> None:
    """Write goldens of one model as one, a bundle or an archive.

    A folder, a name that ends in .zip or /, or a URL becomes a bundle; any other path an archive. See `save_bundle` for
    `parts`, which may be produced during writing.
    """
    if is_bundle_name(path):
        save_bundle(path, parts)
        return
    save_archive(local_path(path), parts)


def check_golden_output(path: PathLike, sources: Iterable[PathLike] = (), *, replaces: bool) -> None:
    """Refuse a path that a golden cannot be written to, before any work is done.

    `replaces`: an existing path is refused, too.

    Raises:
        FileAccessError: Names the problem.
    """
    place, read = local_path(path), [local_path(source) for source in sources]
    local = [source for source in read if not is_url(source)]
    if is_url(place):
        check_remote(place, [source for source in read if is_url(source)], MANIFEST, replace=replaces)
    elif is_bundle_name(path) and not is_zip(place):
        check_folder(place, MANIFEST)
        check_apart(place, local)
        if os.path.isdir(place) and os.listdir(place) and not replaces:
            check_outputs([os.path.join(place, MANIFEST)])
    else:
        check_outputs([place], local, replace=replaces)


def model_of(path: PathLike) -> str:
    """Return the SHA-256 of a golden's model; "" if it names none. Raise as `load_golden`."""
    path = local_path(path)
    return str(manifest(path)["model_sha256"]) if is_bundle(path) else model_of_archive(path)


def check_model(path: PathLike, sha256: str) -> None:
    """Raise a GoldenError if a path holds a golden of another model than that of the digest; other dumps pass."""
    is_golden = is_bundle(path) and not is_archive_of_files(path)
    known = model_of(path) if is_golden or str(path).endswith(".npz") else ""
    require_model(str(path), known, sha256)


def require_model(path: str, known: str, sha256: str) -> None:
    """Raise a GoldenError if the recorded model, `known` by its digest, is not that of the other digest."""
    if known and known != sha256:
        reason = f"was recorded from another model (SHA-256 {known[:12]}..., and this one has {sha256[:12]}...)"
        raise GoldenError(f"{path}: {reason}; `tflq record` makes a golden of this one")


def merge_goldens(paths: Sequence[PathLike], output: PathLike) -> int:
    """Merge goldens of the same model and runtime into one, samples of equal inputs once; return their number.

    Raises:
        GoldenError: They belong to different models or runtimes, or contradict each other.
        FileAccessError: A path cannot be read or written.

    Example:
        >>> golden = "golden/recorded/digits_mobilenet_int8.npz"
        >>> tflq.merge_goldens([golden, golden], "merged.npz")
        4
    """
    check_golden_output(output, paths, replaces=True)
    goldens = [load_golden(path) for path in paths]
    first = goldens[0]
    for path, golden in zip(paths, goldens, strict=True):
        for what, one, other in (
            ("model", first.model_sha256, golden.model_sha256),
            ("runtime", _runtime(first), _runtime(golden)),
            ("choice of tensors", first.tensors, golden.tensors),
        ):
            if one != other:
                raise GoldenError(f"{path}: is of another {what} than {paths[0]}")
    known: dict[object, object] = {}
    parts = [golden.chosen(_new(golden, known, str(path))) for path, golden in zip(paths, goldens, strict=True)]
    save_golden(parts, output)
    return sum(len(part.observations) for part in parts)


def prune_golden(path: PathLike, output: PathLike, *, samples: slice | None = None, drop_tensors: bool = False) -> int:
    """Write a golden with some of the samples, those of equal inputs once, and only the arrays that they use.

    Args:
        path: The golden.
        output: The path of the new golden.
        samples: The numbers of the samples to keep. None: all.
        drop_tensors: True to leave out the operators' results.

    Returns:
        The number of samples.

    Raises:
        GoldenError: No sample is left.
        FileAccessError: A path cannot be read or written.

    Example:
        >>> tflq.prune_golden("golden/recorded/digits_mobilenet_int8.npz", "first.npz", samples=slice(0, 1))
        1
    """
    check_golden_output(output, [path], replaces=True)
    golden = load_golden(path)
    golden = golden.plain() if drop_tensors else golden
    chosen = range(len(golden.observations))[samples or slice(None)]
    lost = next((k for k in chosen if golden.steps[k][1] and k - 1 not in chosen), None)
    if lost is not None:
        raise GoldenError(f"{path}: sample {lost} continues sample {lost - 1}: keep both, or neither")
    golden = golden.chosen(chosen)
    kept = _new(golden, {}, str(path))
    if not kept:
        raise GoldenError(f"{path}: no sample is left")
    save_golden([golden.chosen(kept)], output)
    return len(kept)


def _new(golden: Golden, known: dict[object, object], path: str) -> list[int]:
    """Return the samples whose inputs are not in `known`, and add them there.

    Samples that continue belong to the one that they continue: all of them are new, or none.
    """
    new, run = [], list[int]()
    before: object = None
    fresh = False
    for k, one in enumerate(golden.plain().observations):
        if not one.continues:
            new += run if fresh else []
            run, before, fresh = [], None, False
        run.append(k)
        before = inputs = (
            (before, one.signature, _curation_name(one.inputs))
            if one.signature or one.continues
            else _curation_name(one.inputs)
        )
        outputs = digest_of(one.outputs)
        if inputs not in known:
            known[inputs] = outputs
            fresh = True
        elif known[inputs] != outputs:
            raise GoldenError(f"{path}: sample {k} has other outputs than another sample of the same inputs")
    return [*new, *(run if fresh else [])]


def _curation_name(values: Sequence[Array | None]) -> tuple[object, ...]:
    """Return the names of arrays in files, which distinguish payloads of NaN: a kernel may read them."""
    return tuple(None if v is None else tuple(map(digest, pack("", v).values())) for v in values)


def differing_input(first: Observation, second: Observation) -> int | None:
    """Return the position of the first input in which two samples differ."""
    pairs = zip(first.inputs, second.inputs, strict=True)
    return next((i for i, (one, other) in enumerate(pairs) if not same_bits(one, other)), None)


def _runtime(golden: Golden) -> dict[str, Any]:
    said = golden.runtime
    facts = asdict(said) if isinstance(said, Description) else dict(said)
    return {name: facts.get(name) for name in ("name", "package", "version", "resolver", "threads", "platform")}


def arrays_of(golden: Golden) -> tuple[int, int]:
    """Return the number of arrays in a golden, and the number of different ones."""
    count, names = 0, set[object]()
    for observation in golden.observations:
        for value in (*observation.inputs, *observation.outputs, *observation.tensors.values()):
            if value is not None:
                count += 1
                names.update(_curation_name([value]))
    return count, len(names)
