"""Golden bundles: a folder, a zip archive or a URL with manifest.json, samples.jsonl and data/DIGEST.npy.

docs/golden-format.md describes the format, schemas/golden.schema.json the manifest. Arrays are named by their contents,
so that equal ones are stored once; samples are written and read one at a time.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from tflq.comparison.verification.archive import RUNTIME, check_types, step_of
from tflq.comparison.verification.counterpart import counterpart
from tflq.comparison.verification.golden import EMPTY, Golden, Observation, Stored, Tolerance, named_tensors, tensors_of
from tflq.comparison.verification.manifest import GoldenDocument
from tflq.comparison.verification.results import InputFacts
from tflq.engine.runtimes import Description
from tflq.engine.runtimes.transport import pack, unpack
from tflq.errors import FileAccessError, GoldenError, InputError, TflqError
from tflq.model.storage.arrays import digest, read_elements, read_header
from tflq.model.storage.documents import BYTES, check_size, read_json
from tflq.model.storage.output import PathLike
from tflq.model.storage.reading import open_file
from tflq.model.storage.remote import is_url, local_path
from tflq.model.storage.stores import Sink, Store, is_zip, open_store, write_store
from tflq.typing import Array

SCHEMA = "tflq/golden/1"
MANIFEST, SAMPLES = "manifest.json", "samples.jsonl"
#: Limit on bytes of all sample rows, which are kept, and length of the shortest row: one without a value.
_ROWS_BYTES = 256 << 20
_SHORTEST_ROW = len('{"inputs":[],"outputs":[],"tensors":{}}')
_DIGEST = re.compile(r"[0-9a-f]{32}")
_FACTS: Mapping[str, type | tuple[type]] = {
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
            return _observation(store, rows[k], whole=whole)

    return Golden(
        observations=Stored(len(rows), read, steps=steps),
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
    missing = [name for name in _FACTS if name not in facts]
    if missing:
        raise GoldenError(f"{source}: the manifest lacks {missing[0]}")
    check_types(facts, _FACTS, source)
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


def _observation(store: Store, line: bytes, *, whole: bool) -> Observation:
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
