"""Outcomes of edges in released runtimes, and what changed from one release to the next."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from opfuzz.edges import Edge
from opfuzz.remote import Ended, Refused, Remote, Result
from opfuzz.sides import SECONDS, with_real_shapes

#: Package -> the module of its interpreter, and the names of its resolvers.
PACKAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tflite-runtime": ("tflite_runtime.interpreter", ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN")),
    "ai-edge-litert": ("ai_edge_litert.interpreter", ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN")),
    "ai-edge-litert-nightly": (
        "ai_edge_litert.interpreter",
        ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "BUILTIN"),
    ),
    "tflite-micro": ("tflite_micro", ("",)),
}
#: Packages whose releases follow each other, oldest first.
LINES = (("tflite-runtime", "ai-edge-litert", "ai-edge-litert-nightly"), ("tflite-micro",))
#: Outcomes other than the digest of outputs.
REFUSED, ENDED, UNDEFINED = "refused", "ended", "undefined"


@dataclass(frozen=True)
class Environment:
    """A released package in a virtual environment named PACKAGE-VERSION."""

    package: str
    version: str
    python: Path

    @property
    def name(self) -> str:
        """Its name as a reader knows it."""
        return f"{self.package} {self.version}"

    @property
    def order(self) -> tuple[int, tuple[int, ...]]:
        """Its place among the releases of its line."""
        line = next(line for line in LINES if self.package in line)
        return line.index(self.package), tuple(int(part) for part in re.findall(r"\d+", self.version))


def environments(folder: Path) -> list[Environment]:
    """Return the environments in a folder, oldest first within their line."""
    found = []
    for place in sorted(folder.iterdir()):
        package = max((p for p in PACKAGES if place.name.startswith(f"{p}-")), key=len, default="")
        python = place / "bin" / "python"
        if package and python.exists():
            found.append(Environment(package, place.name.removeprefix(f"{package}-"), python))
    return sorted(found, key=lambda one: one.order)


@dataclass
class Outcomes:
    """The outcome of each edge in a runtime, by the edge's number."""

    name: str
    resolver: str
    by_number: dict[int, str] = field(default_factory=dict)


class Kept:
    """Outcomes in a file, so that only new releases run; those of another suite are dropped."""

    def __init__(self, path: Path, suite: str) -> None:
        self._path, self._suite = path, suite
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        self._known: dict[str, dict[str, str]] = known.get("outcomes", {}) if known.get("suite") == suite else {}

    def get(self, one: Environment, resolver: str) -> Outcomes | None:
        """Return the outcomes of a runtime; None if they are not known."""
        known = self._known.get(f"{one.name} {resolver}")
        if known is None:
            return None
        return Outcomes(one.name, resolver, {int(number): outcome for number, outcome in known.items()})

    def put(self, made: Outcomes) -> None:
        """Keep the outcomes of a runtime."""
        self._known[f"{made.name} {made.resolver}"] = {str(n): outcome for n, outcome in made.by_number.items()}
        document = {"suite": self._suite, "outcomes": self._known}
        self._path.write_text(json.dumps(document), encoding="utf-8")


def outcomes(one: Environment, resolver: str, edges: Sequence[Edge]) -> Outcomes | None:
    """Return the outcomes of all edges; None if the package does not start."""
    module, _ = PACKAGES[one.package]
    poisoned = {**os.environ, "MALLOC_PERTURB_": "165"}
    try:
        first = Remote([str(one.python)], module, resolver, SECONDS)
        second = Remote([str(one.python)], module, resolver, SECONDS, poisoned)
    except (EOFError, OSError):
        return None
    made = Outcomes(one.name, resolver)
    for edge in edges:
        is_micro = one.package == "tflite-micro"
        if is_micro and not edge.is_for_micro:
            continue
        asked = _declared(edge) if is_micro else edge
        answers = [_outcome(remote.outputs(asked.content, asked.samples)) for remote in (first, second)]
        made.by_number[edge.number] = answers[0] if answers[0] == answers[1] else UNDEFINED
    first.close()
    second.close()
    return made


@cache
def _declared(edge: Edge) -> Edge:
    return with_real_shapes(edge)


def _outcome(answered: Result) -> str:
    if isinstance(answered, Ended):
        return ENDED
    if isinstance(answered, Refused):
        return REFUSED
    digest = hashlib.sha256()
    for sample in answered.outputs:
        for array in sample:
            digest.update(repr((array.dtype.str, array.shape)).encode())
            digest.update(array.tobytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Change:
    """Differences between two neighbouring releases of one resolver: numbers of edges by operator."""

    before: str
    after: str
    resolver: str
    compared: int
    bits: Counter[str]
    accepted: Counter[str]
    refused: Counter[str]
    examples: tuple[int, ...]


def changes(found: Sequence[Outcomes], edges: Sequence[Edge]) -> Iterator[Change]:
    """Yield the changes between neighbours; `found` are the outcomes of one resolver in order."""
    ops = {edge.number: edge.case.op for edge in edges}
    for before, after in itertools.pairwise(found):
        bits, accepted, refused = Counter[str](), Counter[str](), Counter[str]()
        examples = []
        shared = before.by_number.keys() & after.by_number.keys()
        compared = 0
        for number in sorted(shared):
            one, other = before.by_number[number], after.by_number[number]
            if {one, other} & {ENDED, UNDEFINED}:
                continue
            compared += 1
            if one == other:
                continue
            kind = accepted if one == REFUSED else refused if other == REFUSED else bits
            kind[ops[number]] += 1
            examples.append(number)
        yield Change(before.name, after.name, after.resolver, compared, bits, accepted, refused, tuple(examples))
