"""Check a certificate: the model and the profiles by hash, then every statement by a new proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tflq.api.files import Source
from tflq.api.subject import ModelFacts, subject
from tflq.display import displayed_by
from tflq.errors import InputError
from tflq.ir import Model
from tflq.profiles import by_name
from tflq.proof.certificate import Certificate, profile_digest
from tflq.proof.proof import Proof, proof_of
from tflq.proof.selection import Selection, taking

#: The statements about an operator that a new proof must repeat; methods only explain.
_OF_OPERATOR = ("subgraph", "index", "op", "verdict", "accumulators", "groups")
#: Number of reasons that are kept.
_MOST = 20


@displayed_by("prove.check:check_report")
@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A certificate compared with a model. It holds if there are no `problems`.

    `proof` is the new proof; None if a hash already shows that the certificate is about something else.
    """

    model: ModelFacts
    certificate: Certificate
    problems: tuple[str, ...]
    proof: Proof | None

    @property
    def holds(self) -> bool:
        """True if every statement of the certificate is true of this model."""
        return not self.problems

    @property
    def word(self) -> str:
        """The verdict on the certificate: "holds" or "void"."""
        return "holds" if self.holds else "void"


def check_certificate(model: Source | Model, certificate: Certificate) -> Check:
    """Prove again what a certificate states about a model.

    Raises:
        UnknownNameError: It names a profile or signature that does not exist.
        FileAccessError, FormatError: See `load`.
    """
    target = subject(model)
    problems = tuple(_identity(target.facts, certificate))
    if problems:
        return Check(target.facts, certificate, problems, None)
    signature = certificate.document.get("signature")
    if not isinstance(signature, str | None):
        raise InputError("names no signature", name="certificate", expected="text or null", got=signature)
    made = proof_of(target, _selection(certificate), signature)
    return Check(target.facts, certificate, tuple(_unequal(certificate, made.certificate()))[:_MOST], made)


def _selection(certificate: Certificate) -> Callable[[Sequence[Model]], Selection]:
    """Return the rule by which the certificate's profiles were chosen."""
    profiles = [by_name(name) for name in (*certificate.profiles, *certificate.refusing)]
    if certificate.refusing:
        return partial(taking, profiles)
    return lambda _parts: Selection(tuple(profiles))


def _identity(facts: ModelFacts, certificate: Certificate) -> Iterator[str]:
    """Yield what is not what the certificate is about."""
    if facts.sha256 != certificate.sha256:
        yield f"another model: SHA-256 {facts.sha256}, in the certificate {certificate.sha256}"
    for one in certificate.document["profiles"]:
        digest = profile_digest(by_name(one["name"]))
        if digest != one["sha256"]:
            yield f"profile {one['name']} is defined otherwise: {digest:.12}, in the certificate {one['sha256']:.12}"


def _unequal(certificate: Certificate, made: Certificate) -> Iterator[str]:
    """Yield the statements that the new proof does not repeat."""
    claimed, proved = certificate.document, made.document
    for key in ("verdict", "coverage"):
        if claimed[key] != proved[key]:
            yield f"{key}: the certificate has {claimed[key]!s:.80}, the proof gives {proved[key]!s:.80}"
    for name in sorted({*certificate.profiles} ^ {*made.profiles}):
        yield f"profile {name}: {'refuses the model' if name in certificate.profiles else 'takes the model'}"
    entries = {one["name"]: _without_aliases(one) for one in proved["profiles"]}
    for one in claimed["profiles"]:
        if _without_aliases(one) != entries.get(one["name"], _without_aliases(one)):
            yield f"profile {one['name']}: the certificate describes another runtime"
    if len(claimed["operators"]) != len(proved["operators"]):
        yield f"{len(claimed['operators'])} operators, the proof has {len(proved['operators'])}"
    for one, other in zip(claimed["operators"], proved["operators"], strict=False):
        yield from _unequal_operator(one, other)


def _without_aliases(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "also"}


def _unequal_operator(claimed: Any, proved: dict[str, Any]) -> Iterator[str]:
    place = f"operator {proved['index']} {proved['op']}"
    if not isinstance(claimed, dict):
        yield f"{place}: the certificate has no statement"
        return
    for key in _OF_OPERATOR:
        if claimed.get(key) != proved[key]:
            yield f"{place}: {key} {claimed.get(key)!s:.80} in the certificate, {proved[key]!s:.80} by the proof"
