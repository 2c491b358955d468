"""A suite of cases on disk: one archive that stores equal arrays and models once; equal suites have equal bytes.

The archive (`.npz`, no pickles) holds `suite`, UTF-8 JSON, and `data/DIGEST` for every model (uint8) and array, named
by the first 32 digits of the SHA-256 of its type, shape and bytes. docs/conformance.md describes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflq.errors import InputError, OptionError
from tflq.model.storage.archive import Archive, write_arrays
from tflq.model.storage.arrays import digest
from tflq.model.storage.documents import read_json
from tflq.typing import Array

SCHEMA = "tflq/suite/1"
MANIFEST = "suite"
_DIGEST = re.compile(r"[0-9a-f]{32}")
_ID = re.compile(r"[0-9]{5}-[a-z0-9_]{1,64}")
LEVELS = ("smoke", "standard", "exhaustive")


@dataclass(frozen=True, slots=True)
class Case:
    """One model with its inputs and expected outputs; digests represent models and arrays.

    `aim` is the subject of the test; `tells` names profiles that give other bits than expected. `samples` holds the
    inputs of each run, `expected` the outputs; it is empty if the model must be refused.
    """

    id: str
    op: str
    types: str
    level: str
    aim: str
    tells: tuple[str, ...]
    model: str
    samples: tuple[tuple[str, ...], ...]
    expected: tuple[tuple[str, ...], ...]

    @property
    def digest(self) -> str:
        """A digest of the model and its inputs, by which the case is known in suites of other versions."""
        return hashlib.sha256(json.dumps([self.model, self.samples]).encode()).hexdigest()[:32]

    @property
    def is_refused(self) -> bool:
        """True if a target must refuse the model."""
        return not self.expected


@dataclass(frozen=True, slots=True)
class Suite:
    """All cases, and the profile whose outputs are expected; `shard` (i, n): the suite is the i-th of n parts."""

    profile: str
    level: str
    seed: int
    version: str  # of tflq
    cases: tuple[Case, ...]
    shard: tuple[int, int] = (1, 1)

    def part(self, level: str, shard: tuple[int, int] = (1, 1)) -> Suite:
        """Return the cases up to that level; shard (i, n) takes every n-th of them, from the i-th on."""
        kept = [c for c in self.cases if LEVELS.index(c.level) <= LEVELS.index(level)]
        return replace(self, level=level, cases=tuple(kept[shard[0] - 1 :: shard[1]]))

    def shard_of(self, shard: tuple[int, int]) -> tuple[int, int]:
        """Return which part of the whole suite a shard of this one is.

        Raises:
            OptionError: This suite is a part itself, and the shard is not all of it.
        """
        if self.shard != (1, 1) and shard != (1, 1):
            raise OptionError(f"--shard: the suite is part {self.shard[0]}/{self.shard[1]} itself: leave --shard out")
        return self.shard if shard == (1, 1) else shard


def write_suite(path: str, suite: Suite, data: Mapping[str, Array]) -> None:
    """Write a suite with the data of its digests."""
    document = {
        "schema": SCHEMA,
        "profile": suite.profile,
        "level": suite.level,
        "seed": suite.seed,
        "version": suite.version,
        "cases": [[getattr(c, name) for name in Case.__slots__] for c in suite.cases],
    }
    if suite.shard != (1, 1):
        document["shard"] = list(suite.shard)
    text = json.dumps(document, separators=(",", ":")).encode()
    arrays = {MANIFEST: np.frombuffer(text, np.uint8)}
    write_arrays(path, arrays | {f"data/{d}": data[d] for d in sorted(data)}, compress=True)


def read_suite(archive: Archive) -> Suite:
    """Return the suite of an open archive, checked; its data are read on demand.

    Raises:
        InputError: The archive holds no suite, or one that does not match the schema.
    """
    source = archive.source
    if MANIFEST not in archive:
        raise InputError("is not a conformance suite", name=source)
    manifest = read_json(archive[MANIFEST].tobytes(), source)
    is_suite = isinstance(manifest, dict) and manifest.get("schema") == SCHEMA
    if not is_suite or not isinstance(manifest.get("cases"), list):
        raise InputError("is not a conformance suite that this version reads", name=source, expected=SCHEMA)
    words = [manifest.get(name) for name in ("profile", "level", "version")]
    seed = manifest.get("seed")
    if not all(isinstance(w, str) for w in words) or words[1] not in LEVELS or not isinstance(seed, int):
        raise InputError("does not name the profile whose outputs it holds", name=source)
    cases = tuple(_case(row, archive) for row in manifest["cases"])
    if len({case.id for case in cases}) != len(cases):
        raise InputError("has two cases of the same name", name=source)
    shard = manifest.get("shard", [1, 1])
    if not isinstance(shard, list) or len(shard) != 2 or not all(type(n) is int and 1 <= n <= shard[1] for n in shard):
        raise InputError("is a malformed part of a suite", name=source, got=f"{shard!r:.80}")
    return Suite(str(words[0]), str(words[1]), seed, str(words[2]), cases, (shard[0], shard[1]))


def _case(row: Any, archive: Archive) -> Case:
    if not isinstance(row, list) or len(row) != len(Case.__slots__):
        raise InputError("holds a malformed case", name=archive.source)
    name, op, types, level, aim, tells, model, samples, expected = row
    words = (name, op, types, level, aim, model)
    fits = all(isinstance(w, str) for w in words) and level in LEVELS and _ID.fullmatch(name) and _strings(tells)
    if (
        not fits
        or not samples
        or not _rows(samples)
        or not _rows(expected)
        or (expected and len(expected) != len(samples))
    ):
        raise InputError("holds a malformed case", name=archive.source, got=str(name)[:80])
    digests = [model, *(d for sample in (*samples, *expected) for d in sample)]
    if not all(_DIGEST.fullmatch(d) and f"data/{d}" in archive for d in digests):
        raise InputError("lacks data of a case", name=archive.source, got=name)
    tuples = [tuple(map(tuple, rows)) for rows in (samples, expected)]
    return Case(name, op, types, level, aim, tuple(tells), model, *tuples)


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(map(_strings, value))


def arrays(archive: Archive, digests: Iterable[str]) -> list[Array]:
    """Return the arrays of digests, each checked against its name.

    Raises:
        InputError: The data were changed.
    """
    return [_check(archive, name) for name in digests]


def _check(archive: Archive, name: str) -> Array:
    array = archive[f"data/{name}"]
    if digest(array) != name:
        raise InputError("holds data that do not match their digest", name=archive.source, got=name)
    return array


def model_of(archive: Archive, case: Case) -> bytes:
    """Return the case's model file."""
    return _check(archive, case.model).tobytes()


def kept(cases: Sequence[Case], archive: Archive) -> dict[str, Array]:
    """Return all data of some cases."""
    names = {d for c in cases for d in (c.model, *(d for s in (*c.samples, *c.expected) for d in s))}
    return {name: _check(archive, name) for name in sorted(names)}
