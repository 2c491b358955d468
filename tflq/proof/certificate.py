"""Certificates: what is proved of a model, as a file that others can check.

A certificate names the model and each profile by hash. Nothing in it is trusted: a check makes the proof again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from tflq.engine.api.subject import ModelFacts
from tflq.engine.profiles import Profile
from tflq.engine.profiles.file import document_of
from tflq.engine.profiles.table import ALIASES
from tflq.errors import InputError
from tflq.model.storage.documents import BYTES, read_json
from tflq.model.storage.output import PathLike, write_file
from tflq.model.storage.reading import open_file
from tflq.proof.coverage import Coverage
from tflq.proof.selection import Selection
from tflq.proof.verdicts import OperatorProof, Word

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
    coverage: Iterable[Coverage],
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


def _coverage(one: Coverage, operators: Sequence[OperatorProof]) -> dict[str, Any]:
    """Return how far a subgraph is proved, with the operators outside of the proof by name."""
    words = {o.index: f"{o.op}: {o.word.value}" for o in operators if o.subgraph == one.subgraph}
    return {**reach(one), "outside": [f"{index} {words.get(index, 'not decided')}" for index in one.outside]}


def reach(one: Coverage) -> dict[str, Any]:
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
