"""Files that nobody would write by accident: models, recordings, dumps and recipes, made from seeds."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from modelfuzz.changes import changed_often

from tflq.errors import FormatError
from tflq.model.flatbuf import write
from tflq.model.ir import Model

#: Names that terminals, XML, archives, paths or Python's keyword arguments take for something else.
NAMES = (
    "\x1b]0;title\x07",
    "nul\0name",
    "\udcff\udcfe",
    "\udced\udca0\udc80",
    "x" * 70000,
    "allow_pickle",
    "file",
    "../../up",
    "/abs",
    "<script>alert(1)</script>",
    "[bold red]x[/]",
    "\u202eright",
    "two\nlines",
    "s0_out0",
    "t0",
    "\x9b31m",
    "",
    None,
)


def hostile(model: Model, seed: int) -> bytes:
    """The file of a model with random changes to its graph, its tensors' names or its bytes."""
    chance = random.Random(seed)
    data = None
    while data is None:  # some changes fit no file
        with suppress(FormatError):
            data = bytearray(write(_changed(model, chance)))
    for _ in range(chance.choice((0, 0, 0, 1, 4))):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def _changed(model: Model, chance: random.Random) -> Model:
    changed = changed_often(model, chance.randrange(1 << 30)) if chance.random() < 0.8 else model
    if chance.random() < 0.5:
        return changed
    graph = changed.subgraphs[0]
    named = tuple(replace(t, name=chance.choice(NAMES)) if chance.random() < 0.5 else t for t in graph.tensors)
    return replace(changed, subgraphs=(replace(graph, tensors=named), *changed.subgraphs[1:]))


def archives(recorded: Path, folder: Path) -> Iterator[Path]:
    """Variants of a golden file, each wrong in one way."""
    entries = dict(np.load(recorded))
    out = entries["s0_out0"]

    def saved(name: str, **changes: np.ndarray) -> Path:
        np.savez(folder / f"{name}.npz", **{**entries, **changes})
        return folder / f"{name}.npz"

    for number, text in enumerate(PROVENANCES):
        yield saved(f"provenance{number}", tflq_golden=np.frombuffer(text, np.uint8))
    yield saved("far", s0_out999999999=out)
    yield saved("digits", **{"s0_in" + "9" * 60: out})
    yield saved("superscript", **{"s0_in²": out})
    yield saved("samples", **{f"s{k}_out0": out for k in range(2000)})
    yield saved("types", s0_out0=out.astype(np.complex64))
    yield saved("floats", s0_in0=entries["s0_in0"].astype(np.float32))
    yield saved("shape", s0_in0=np.zeros((1, 3), np.int8))
    yield saved("rank", s0_out0=np.zeros((1,) * 60, out.dtype))
    yield saved("text", s0_out0=np.array(["a"]))
    yield saved("records", s0_out0=np.zeros(2, [("a", "i1"), ("b", "f4")]))
    yield saved("strings", **{"s0_in0.lengths": np.array([-1, 5]), "s0_in0.bytes": np.zeros(2, np.uint8)})
    yield saved("names", **{"\x1b]0;x\x07": out, "tflq_names": np.frombuffer(b'{"s0_in0": "\\ud800"}', np.uint8)})
    yield from _raw(folder)


#: What a golden file may say of itself that is not so.
PROVENANCES = (
    b"",
    b"\xff\xfe{",
    b"[" * 100000,
    b"[]",
    b"5",
    b'{"format": 5}',
    *(
        json.dumps({"format": "tflq-golden/1", **facts}).encode()
        for facts in (
            {"notes": 5},
            {"notes": ["\ud800", "\x1b[31m"]},
            {"notes": [[1]]},
            {"samples": "1"},
            {"samples": 10**400},
            {"samples": -1},
            {"runtime": []},
            {"runtime": {"name": {"a": 1}}},
            {"runtime": {"threads": "many"}},
            {"runtime": {"package": "\ud800", "version": "\x1b[31m"}},
            {"runtime": {"delegated": 7}},
            {"tensors": "yes"},
            {"model_sha256": 7},
            {"model_sha256": "\ud800"},
            {"format": None},
        )
    ),
)


def _raw(folder: Path) -> Iterator[Path]:
    """Archives that no program that writes arrays makes."""
    header = "{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n"
    for name, content in {
        "nothing": b"",
        "zip of text": b"hello",
        "huge": _npy(header.format("|i1", (10**9, 10**9))),
        "negative": _npy(header.format("|i1", (-1, -8))),
        "objects": _npy(header.format("|O", (1,))) + b"cos\nsystem\n(S'false'\ntR.",
        "nested": _npy("(" * 5000),
    }.items():
        with zipfile.ZipFile(folder / f"{name}.npz", "w") as file:
            for entry in ("s0_in0.npy", "s0_out0.npy"):
                file.writestr(entry, content)
        yield folder / f"{name}.npz"
    with zipfile.ZipFile(folder / "empty.npz", "w"):
        yield folder / "empty.npz"
    for name, data in {"no zip": b"PK\x03\x04" + bytes(50), "zero bytes": b""}.items():
        (folder / f"{name}.npz").write_bytes(data)
        yield folder / f"{name}.npz"
    with zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for entry in ("s0_in0.npy", "s0_out0.npy"):
            file.writestr(entry, _npy(header.format("|i1", (1 << 24,))) + bytes(1 << 24))
    yield folder / "bomb.npz"


def _npy(header: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
