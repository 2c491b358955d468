"""Certificates: what is proved of a model, as a file that others can check.

How far a subgraph is proved: the tensors that are equal for every input of the subgraph.

The profiles of a proof: those that are named, or all that take the model.

A certificate names the model and each profile by hash. Nothing in it is trusted: a check makes the proof again.

A certificate as a type.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal, TypedDict

from tflq.engine.api.files import ModelFacts
from tflq.engine.interpreter import make_plan
from tflq.engine.kernels.validity import SPEC
from tflq.engine.profiles import PROFILES, Profile, by_name
from tflq.engine.profiles.file import document_of
from tflq.engine.profiles.table import ALIASES
from tflq.errors import InputError, OptionError, TflqError, brief
from tflq.model.ir import Model, view
from tflq.model.storage.documents import BYTES, read_json
from tflq.model.storage.kinds import open_file
from tflq.model.storage.output import PathLike, write_file
from tflq.proof.operator import OperatorProof, Undecidable, Word
from tflq.typing import Pair


@dataclass(frozen=True, slots=True)
class ProofCoverage:
    """One subgraph, with equal inputs. `covered` are computed tensors whose whole upstream is proved equal.

    `edge` are those of them that the subgraph outputs or that an operator outside of the proof reads. `outputs` are the
    subgraph's outputs, `outside` the operators that are not covered.
    """

    subgraph: int
    covered: tuple[int, ...]
    edge: tuple[int, ...]
    outputs: tuple[int, ...]
    outside: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """True if no operator is outside of the proof."""
        return not self.outside


def coverage_of(model: Model, number: int, operators: Iterable[OperatorProof]) -> ProofCoverage:
    """Return how far the first subgraph of `model`, which has that number in the file, is proved."""
    graph = view(model)
    equal = {o.index for o in operators if o.subgraph == number and o.word == Word.EQUAL}
    computed = {*graph.computed}
    varying = {t for t, spec in enumerate(graph.tensors) if spec.is_variable}
    covered = {t for t in range(len(graph.tensors)) if t not in computed} - varying
    outside = []
    for op in graph.ops:
        if op.index in equal and covered.issuperset(t for t in op.inputs if t >= 0):
            covered.update(t for t in op.writes)
        else:
            covered.difference_update(op.writes)
            outside.append(op.index)
    read = {t for index in outside for t in graph.op(index).inputs}
    reached = [t for t in graph.computed if t in covered]
    edge = tuple(t for t in reached if t in read or t in graph.outputs)
    return ProofCoverage(number, tuple(reached), edge, tuple(t for t in graph.outputs if t >= 0), tuple(outside))


#: The word for every profile of a runtime.
ALL = "all"


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The profiles that a verdict is about, and those that refuse the model, each with its reason."""

    profiles: tuple[Profile, ...]
    refused: tuple[Undecidable, ...] = ()


def runtimes() -> tuple[Profile, ...]:
    """Return every profile of a runtime."""
    return tuple(p for p in PROFILES.values() if p.runtime.library != SPEC)


def select(profiles: Sequence[str | Profile] | str, parts: Sequence[Model]) -> Selection:
    """Return the named profiles; for "all", or a list that begins with it, those of them that take every subgraph.

    Raises:
        UnknownNameError: No profile has that name.
        OptionError: There are fewer than two profiles, or one is named twice.
    """
    words = [profiles] if isinstance(profiles, str) else list(profiles)
    if ALL not in words:
        if len(words) < 2:
            raise OptionError('a proof compares at least two profiles; "all" names every runtime\'s')
        return Selection(tuple(map(by_name, words)))
    named = [by_name(word) for word in words if word != ALL]
    return taking([*named, *runtimes()], parts)


def taking(profiles: Sequence[Profile], parts: Sequence[Model]) -> Selection:
    """Return the profiles, each once, by whether they take every operator of these models."""
    distinct = tuple({p.name: p for p in profiles}.values())
    refusals = {p.name: refusal for p in distinct if (refusal := _refusal(p, parts)) is not None}
    return Selection(tuple(p for p in distinct if p.name not in refusals), tuple(refusals.values()))


def _refusal(profile: Profile, parts: Sequence[Model]) -> Undecidable | None:
    try:
        for part in parts:
            make_plan(part, profile)
    except TflqError as error:
        return Undecidable(profile.name, brief(error))
    return None


SCHEMA = "tflq/certificate/1"
#: The keys of a certificate, each with the type of its value.
_KEYS: Mapping[str, type] = {
    "schema": str,
    "tflq": str,
    "digest": str,
    "model": dict,
    "verdict": str,
    "profiles": list,
    "not_covered": list,
    "operators": list,
    "coverage": list,
}


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A certificate, as the document that its file holds (`schemas/certificate.schema.json`)."""

    document: Mapping[str, Any]

    @property
    def verdict(self) -> str:
        """The verdict on all operators under all profiles."""
        return str(self.document["verdict"])

    @property
    def sha256(self) -> str:
        """The SHA-256 of the model's file."""
        return str(self.document["model"]["sha256"])

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles that the verdict is about."""
        return tuple(one["name"] for one in self.document["profiles"])

    @property
    def refusing(self) -> tuple[str, ...]:
        """The profiles that refuse the model."""
        return tuple(one["name"] for one in self.document["not_covered"])

    @property
    def digest(self) -> str:
        """The SHA-256 of its statements: all entries except the digest."""
        stated = {key: value for key, value in self.document.items() if key != "digest"}
        return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()

    def text(self) -> str:
        """Return the file: JSON, the same bytes for the same proof."""
        return json.dumps(self.document, indent=1, sort_keys=True) + "\n"

    def write(self, path: PathLike) -> None:
        """Write the file."""
        write_file(path, self.text().encode())


def certificate_of(
    model: ModelFacts,
    word: Word,
    selection: Selection,
    operators: Iterable[OperatorProof],
    coverage: Iterable[ProofCoverage],
    signature: str | None = None,
) -> Certificate:
    """Return the certificate of a proof."""
    refused = {refusal.profile: refusal.reason for refusal in selection.refused}
    decided = tuple(operators)
    unsigned = Certificate(
        {
            "schema": SCHEMA,
            "tflq": version("tflq"),
            "model": {"name": os.path.basename(model.path), "size": model.size, "sha256": model.sha256},
            "signature": signature,
            "verdict": word.value,
            "profiles": [_profile(profile) for profile in selection.profiles],
            "not_covered": [{"name": name, "reason": reason} for name, reason in refused.items()],
            "operators": [{**stated(operator), "methods": list(operator.methods)} for operator in decided],
            "coverage": [_coverage(one, decided) for one in coverage],
        }
    )
    return Certificate({**unsigned.document, "digest": unsigned.digest})


def _profile(profile: Profile) -> dict[str, Any]:
    also = sorted(alias for alias, name in ALIASES.items() if name == profile.name)
    return {"name": profile.name, "sha256": profile_digest(profile), **asdict(profile.source), "also": also}


def profile_digest(profile: Profile) -> str:
    """Return the SHA-256 of a profile's definition: source, coordinates, arithmetic and changed rows."""
    stated = {key: value for key, value in document_of(profile).items() if key != "about"}
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def stated(operator: OperatorProof) -> dict[str, Any]:
    """Return what is proved of an operator, as documents have it."""
    return {
        "subgraph": operator.subgraph,
        "index": operator.index,
        "op": operator.op,
        "verdict": operator.word.value,
        "accumulators": None if operator.accumulators is None else list(operator.accumulators),
        "groups": [list(group) for group in operator.groups],
    }


def _coverage(one: ProofCoverage, operators: Sequence[OperatorProof]) -> dict[str, Any]:
    """Return how far a subgraph is proved, with the operators outside of the proof by name."""
    words = {o.index: f"{o.op}: {o.word.value}" for o in operators if o.subgraph == one.subgraph}
    return {**reach(one), "outside": [f"{index} {words.get(index, 'not decided')}" for index in one.outside]}


def reach(one: ProofCoverage) -> dict[str, Any]:
    """Return how far a subgraph is proved, as documents have it."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(one).items()}


def read_certificate(path: PathLike) -> Certificate:
    """Return the certificate in a file.

    Raises:
        FileAccessError: The file cannot be read.
        InputError: It is no certificate, or one of another version.

    Example:
        >>> certificate = tflq.prove("golden/models/digits_mobilenet_int8.tflite", ["tflm", "litert-ref"]).certificate()
        >>> certificate.write("certificate.json")
        >>> tflq.read_certificate("certificate.json").verdict
        'differs'
    """
    source = os.fspath(path)
    with open_file(source) as file:
        document = read_json(file.read(BYTES + 1), source)
    if not isinstance(document, dict) or not str(document.get("schema", "")).startswith("tflq/certificate/"):
        raise InputError("is no certificate", name=source, expected=f"a JSON document of schema {SCHEMA}")
    if document["schema"] != SCHEMA:
        raise InputError("is a certificate of another version", name=source, expected=SCHEMA, got=document["schema"])
    for key, kind in _KEYS.items():
        if not isinstance(document.get(key), kind):
            raise InputError(f"is no whole certificate: {key}", name=source, expected=kind.__name__)
    _check_named(document["profiles"], ("name", "sha256"), "profiles", source)
    _check_named(document["not_covered"], ("name",), "not_covered", source)
    _check_named([document["model"]], ("sha256",), "model", source)
    return Certificate(document)


def _check_named(entries: Sequence[Any], keys: Sequence[str], place: str, source: str) -> None:
    for entry in entries:
        for key in keys:
            if not isinstance(entry, dict) or not isinstance(entry.get(key), str):
                raise InputError(f"is no whole certificate: {place}", name=source, expected=f"{key} as text")


class CertificateDocument(TypedDict):
    """A certificate of `tflq prove -o`: what is proved of a model, to be checked by `tflq prove --check`."""

    schema: Literal["tflq/certificate/1"]
    tflq: Annotated[str, "the version that made it"]
    digest: Annotated[str, "SHA-256 of all other entries, as JSON with sorted keys"]
    model: CertifiedModelDocument
    signature: str | None
    verdict: Annotated[Word, "a difference before anything undecided"]
    profiles: list[CertifiedProfileDocument]
    not_covered: Annotated[list[NotCertifiedDocument], "profiles that refuse the model"]
    operators: list[CertifiedOperatorDocument]
    coverage: Annotated[list[CertifiedCoverageDocument], "how far each subgraph is proved, if its inputs are equal"]


class CertifiedModelDocument(TypedDict):
    name: str
    size: int
    sha256: str


class CertifiedProfileDocument(TypedDict):
    name: str
    sha256: Annotated[str, "of the definition of the profile, without its description"]
    package: str
    version: str
    resolver: str
    cpu: str
    vectors: str
    also: Annotated[list[str], "names of releases with the same bits"]


class NotCertifiedDocument(TypedDict):
    name: str
    reason: str


class CertifiedOperatorDocument(TypedDict):
    subgraph: int
    index: Annotated[int, "in its subgraph"]
    op: str
    verdict: Annotated[Word, "on all profiles"]
    methods: Annotated[list[str], "how it was proved, or where profiles differ"]
    accumulators: Annotated[Pair[int] | None, "lowest and highest sum of products with the bias"]
    groups: Annotated[
        list[list[str]], "profiles that are proved to give the same bits, the first profile's group first"
    ]


class CertifiedCoverageDocument(TypedDict):
    subgraph: int
    covered: Annotated[list[int], "computed tensors whose whole upstream is equal for every input"]
    edge: Annotated[list[int], "those of them that are outputs, or that an operator outside of the proof reads"]
    outputs: list[int]
    outside: Annotated[
        list[str], "operators that are not covered, with their verdicts: an equal one follows one that is not"
    ]
