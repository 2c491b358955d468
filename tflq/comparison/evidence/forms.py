"""Forms in which tensors of a run are stored: files and folders.

Folders of one conformance case as dumps: model.tflite, in0_0.bin, out0_0.bin ...; see docs/target-protocol.md.

Files are named by sample and position: `out1_0.bin` is the first output of the second sample.

Forms in which tensors of a run are stored: what a path holds, by sample, before its tensors are known.

Dumps of tflite-micro's layer_by_layer tool: the inputs of a run and the results of every operator.

Source: tflite-micro (October 2026) tensorflow/lite/micro/tools/layer_by_layer.cc, StoreLayerByLayerData.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from tflq.comparison.evidence.c_arrays import Numbers, c_arrays
from tflq.comparison.evidence.logs import log_entries
from tflq.comparison.inputs.read import numbered
from tflq.errors import FileAccessError, FormatError, InputError, LimitError, TflqError
from tflq.model.flatbuf import read_record
from tflq.model.ir import CARRIER, Model, Record, TensorType, view
from tflq.model.storage.arrays import Archive, load_array, opened
from tflq.model.storage.kinds import HEAD, is_text, kind_of, open_file, read_bytes
from tflq.typing import Array

MODEL, DESCRIPTION, REFUSED = "model.tflite", "case.txt", "refused.txt"
_NAME = re.compile(r"(in|out)(\d{1,6})_(\d{1,6})\.bin")


def is_case(place: Path) -> bool:
    """Return whether a folder holds a case of a conformance run."""
    return (place / MODEL).is_file() and (place / DESCRIPTION).is_file()


def case_samples(model: Model, place: Path) -> list[dict[str, Path]]:
    """Return the files of each sample by tensor index.

    Raises:
        InputError: The folder lacks outputs, or holds more than the model has.
    """
    graph = view(model)
    samples: dict[int, dict[str, Path]] = {}
    is_answered = False
    for file in sorted(place.iterdir()):
        name = _NAME.fullmatch(file.name)
        if name is None:
            continue
        tensors = graph.inputs if name[1] == "in" else graph.outputs
        position = int(name[3])
        if position >= len(tensors):
            raise InputError("is for a tensor that the model lacks", name=str(file))
        is_answered |= name[1] == "out"
        samples.setdefault(int(name[2]), {})[str(tensors[position])] = file
    if not is_answered:
        refused = place / REFUSED
        got = "a refusal" if refused.is_file() else "inputs only"
        raise InputError("holds no outputs of a target", name=str(place), expected="out0_0.bin", got=got)
    return [samples[number] for number in sorted(samples)]


@dataclass(frozen=True, slots=True, eq=False)
class StoredEntry:
    """An array of an open archive that has not been read."""

    archive: Archive
    key: str


#: An entry of a dump before its tensor is known: an array, one in an archive or a file, or numbers from C.
Entry: TypeAlias = "Array | StoredEntry | Path | Numbers"
Entries: TypeAlias = Mapping[str, Entry]
C_FILES = (".c", ".cc", ".cpp", ".h", ".hpp", ".inc")
_SAMPLE = re.compile(r"s(\d+)_", re.ASCII)
_RAW = (".bin", ".raw")
LOG_FILES = (".log", ".txt")
_FILES = (".npy", *_RAW, *C_FILES, *LOG_FILES)
#: Limits on what is unpacked from a zip archive.
_MOST_BYTES, _MOST_FILES = 512 << 20, 65_536


def entries_by_sample(model: Model, place: Path, stack: ExitStack) -> Sequence[Entries] | None:
    """Return the entries of each sample at a path, which are open as long as `stack`; None for any other form.

    Raises:
        FileAccessError: It cannot be read.
        InputError: It is damaged.
        LimitError: A zip archive unpacks to too much.
    """
    if not place.exists():
        raise FileAccessError(place, "does not exist")
    if place.is_dir():
        return case_samples(model, place) if is_case(place) else [_folder(model, place)]
    if place.suffix == ".zip":
        return entries_by_sample(model, _unpack(place, stack), stack)
    if place.suffix in C_FILES:
        return [{numbers.name: numbers for numbers in _c_file(place)}]
    if place.suffix == ".npy":
        return [{place.stem: load_array(place)}]
    text = log_text(place)
    if text is not None:
        return log_entries(model, text, str(place))
    if place.suffix != ".npz":
        _refuse_other_kinds(place)
        return None
    return list(by_sample(stack.enter_context(opened(place))))


def _refuse_other_kinds(place: Path) -> None:
    """Raise an InputError if a file is a model, or of another known kind that holds no tensors of a run."""
    with open_file(place) as file:
        head = file.read(HEAD)
    kind = None if place.suffix in _RAW else kind_of(head, str(place))
    name = "a .tflite model" if head[4:8] == b"TFL3" else "" if kind is None else kind.name
    if name:
        expected = "an .npz, an .npy, a C file, a log, or a folder or .zip of tensors"
        raise InputError(f"is {name}, not a dump of a run", name=str(place), expected=expected, got=place.name)


def by_sample(archive: Archive) -> Iterator[dict[str, StoredEntry]]:
    """Yield entries of an archive by sample, without the sample prefix of their names."""
    starts = [_SAMPLE.match(key) for key in archive]
    numbers = numbered(archive) if all(starts) else []
    if not numbers:
        yield {key: StoredEntry(archive, key) for key in archive}
        return
    samples: dict[str, dict[str, StoredEntry]] = {}
    for start in filter(None, starts):
        samples.setdefault(start[1], {})[start.string[start.end() :]] = StoredEntry(archive, start.string)
    yield from (samples[str(k)] for k in numbers)


def raw_elements(path: Path, carrier: np.dtype[Any]) -> Array:
    """Return the elements of a file without a header, little endian."""
    data = read_bytes(path)
    if carrier.hasobject or len(data) % carrier.itemsize:
        raise InputError("size", name=str(path), expected=f"a multiple of {carrier.itemsize} bytes", got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier)


def _folder(model: Model, place: Path) -> dict[str, Entry]:
    """Return files by name. A C file of one array is also found by its file name, several arrays by their names.

    A log gives the tensors that it names, of its first sample.
    """
    entries: dict[str, Entry] = {}
    for file in sorted(place.iterdir()):
        if file.suffix in C_FILES:
            arrays = _c_file(file)
            entries |= {file.stem: arrays[0]} if len(arrays) == 1 else {one.name: one for one in arrays}
        elif file.suffix in LOG_FILES:
            with suppress(InputError):  # notes beside the tensors
                entries |= log_entries(model, _text_of(file), str(file))[0]
        elif file.suffix in _FILES:
            if isinstance(entries.get(file.stem), Path):
                raise InputError(f"holds two files for {file.stem!r}", name=str(place))
            entries[file.stem] = file
    return entries


def log_text(place: Path) -> str | None:
    """Return the text of a log, known by its ending or its first bytes; None for other files."""
    is_other = not place.is_file() or place.suffix in (".npz", ".npy", ".zip", *_RAW, *C_FILES)
    return None if is_other or not (place.suffix in LOG_FILES or _is_text(place)) else _text_of(place)


def _text_of(path: Path) -> str:
    """Return the text of a log, of any encoding; what is no text becomes a mark."""
    data = read_bytes(path)
    if len(data) > _MOST_BYTES:
        raise LimitError(f"is larger than {_MOST_BYTES:,} bytes", path=str(path))
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")


def _is_text(path: Path) -> bool:
    """Return whether a file begins like text."""
    with open_file(path) as file:
        head = file.read(HEAD)
    return bool(head) and is_text(head)


def _c_file(path: Path) -> tuple[Numbers, ...]:
    return c_arrays(read_bytes(path).decode("utf-8", "replace"))


def _unpack(place: Path, stack: ExitStack) -> Path:
    """Unpack the readable files of a zip archive, without their folders; return the only one, or the folder of all."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    suffixes = (*_FILES, ".npz")
    with open_file(place) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = [m for m in archive.infolist() if PurePosixPath(m.filename).suffix in suffixes]
                if sum(m.file_size for m in members) > _MOST_BYTES or len(members) > _MOST_FILES:
                    raise LimitError(f"unpacks to more than {_MOST_BYTES:,} bytes", path=str(place))
                for member in members:
                    target = folder / PurePosixPath(member.filename.replace("\\", "/")).name
                    if target.exists():
                        raise InputError(f"holds two files {target.name!r}", name=str(place))
                    with archive.open(member) as source, target.open("xb") as copy:
                        shutil.copyfileobj(source, copy)
        except TflqError:
            raise
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error) as error:
            raise InputError(f"cannot be unpacked: {error}", name=str(place)) from error
    found = sorted(folder.iterdir())
    if not found:
        expected = f"files {', '.join(suffixes)}, or a golden bundle"
        raise InputError("holds nothing that can be read", name=str(place), expected=expected, got=None)
    return found[0] if len(found) == 1 and found[0].suffix not in _RAW else folder


def layer_by_layer_tensors(model: Model, path: Path) -> dict[int, Array]:
    """Return tensors of the first subgraph, in the dump's types and shapes.

    If the model was fed in steps, it has its last inputs.

    Raises:
        InputError: The file is not such a dump, or belongs to another model.
    """
    try:
        data = read_bytes(path)
        record = read_record(data, "layer_by_layer")
    except FormatError as error:
        kinds = "an .npz, an .npy, a C file, a folder or .zip of tensors, or what tflite-micro's layer by layer writes"
        raise InputError(f"is not a dump ({error})", name=str(path), expected=kinds, got=path.name) from error
    graph = view(model)
    tensors: dict[int, Array] = {}
    for entry in record["input_data"] or ():
        position = int(entry["input_index"])
        if position >= len(graph.inputs):
            raise InputError("inputs", name=str(path), expected=len(graph.inputs), got=position + 1)
        tensors[graph.inputs[position]] = _array(entry, path)
    for part in record["subgraph_data"] or ():
        if part["subgraph_index"] == 0:
            for entry in part["outputs"] or ():
                tensors[_tensor(model, entry, path)] = _array(entry, path)
    if not tensors:
        raise InputError("holds no tensor", name=str(path))
    return tensors


def _tensor(model: Model, entry: Record, path: Path) -> int:
    """Return the entry's tensor, if the same operator produces it in this model."""
    operators, index, layer = view(model).ops, int(entry["tensor_index"]), int(entry["layer_number"])
    if layer >= len(operators) or index not in operators[layer].outputs:
        raise InputError(f"is for another model: operator {layer} makes no tensor {index}", name=str(path))
    return index


def _array(entry: Record, path: Path) -> Array:
    number = int(entry["dtype"])
    if number not in TensorType.__members__.values():
        raise InputError("element type", name=str(path), expected="one of the schema", got=number)
    kind, carrier = TensorType(number), CARRIER[TensorType(number)]
    data = np.asarray(entry["data"] if entry["data"] is not None else (), np.uint8).tobytes()
    shape = tuple(entry["shape"].tolist()) if entry["shape"] is not None else ()
    if carrier.hasobject or len(data) != int(np.prod(shape, dtype=np.int64)) * carrier.itemsize:
        raise InputError(f"bytes of {kind.label} {list(shape)}", name=str(path), got=len(data))
    return np.frombuffer(data, carrier.newbyteorder("<")).astype(carrier).reshape(shape)
