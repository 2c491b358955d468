"""Check a certificate, and operators with different preparation.

Check a certificate: the model and the profiles by hash, then every statement by a new proof.

Operators with different preparation that are proved to give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from tflq.comparison.inspection.profile_effects import Effects, OperatorEffects
from tflq.engine.api.files import ModelFacts, Source, subject
from tflq.engine.profiles import by_name
from tflq.errors import InputError
from tflq.model.ir import Model
from tflq.model.ir.signatures import root_subgraphs
from tflq.proof.certificate import Certificate, Selection, profile_digest, taking
from tflq.proof.operator import Word
from tflq.proof.proof import Proof, contrast, proof_of
from tflq.texts import Documented, display_by

#: Entries that no proof gives: who made it of which file, other names of releases, and methods, which only explain.
_UNPROVED = frozenset({"tflq", "digest", "model: name", "profiles: also", "operators: methods"})
#: Numbers of reasons that are kept, and of profiles that are compared.
_MOST, _MOST_PROFILES = 20, 1000


@display_by("prove:check_report", "check_document")
@dataclass(frozen=True, slots=True, eq=False)
class CertificateCheck(Documented):
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


def check_certificate(model: Source | Model, certificate: Certificate) -> CertificateCheck:
    """Prove again what a certificate states about a model.

    Raises:
        UnknownNameError: It names a profile or signature that does not exist.
        FileAccessError, FormatError: See `load`.

    Example:
        >>> path = "golden/models/digits_mobilenet_int8.tflite"
        >>> certificate = tflq.prove(path, ["tflm", "tflite-2.14-ref"]).certificate()
        >>> tflq.check_certificate(path, certificate).word
        'holds'
    """
    target, signature = subject(model), certificate.document.get("signature")
    if not isinstance(signature, str | None):
        raise InputError("names no signature", name="certificate", expected="text or null", got=signature)
    problems = tuple(islice(_identity(target.facts, certificate), _MOST))
    if problems:
        return CertificateCheck(target.facts, certificate, problems, None)
    made = proof_of(target, _selection(certificate), signature)
    return CertificateCheck(
        target.facts, certificate, tuple(islice(_untrue(certificate, made.certificate()), _MOST)), made
    )


def _selection(certificate: Certificate) -> Callable[[Sequence[Model]], Selection]:
    """Return the rule by which the certificate's profiles were chosen."""
    profiles = [by_name(name) for name in (*certificate.profiles, *certificate.refusing)]
    if certificate.refusing:
        return partial(taking, profiles)
    return lambda _parts: Selection(tuple(profiles))


def _identity(facts: ModelFacts, certificate: Certificate) -> Iterator[str]:
    """Yield what is not what the certificate is about, or was changed after it was made."""
    if facts.sha256 != certificate.sha256:
        yield f"another model: SHA-256 {facts.sha256}, in the certificate {certificate.sha256}"
    if certificate.document.get("digest") != certificate.digest:
        yield "it was changed after it was made: its digest is not that of its statements"
    names = [*certificate.profiles, *certificate.refusing]
    for name in sorted({name for name in names if names.count(name) > 1})[:_MOST]:
        yield f"profile {name} is listed more than once"
    if len(names) > _MOST_PROFILES:
        return
    for one in certificate.document["profiles"]:
        digest = profile_digest(by_name(one["name"]))
        if digest != one["sha256"]:
            yield f"profile {one['name']} is defined otherwise: {digest:.12}, in the certificate {one['sha256']:.12}"


def _untrue(certificate: Certificate, made: Certificate) -> Iterator[str]:
    """Yield the statements that the new proof does not repeat."""
    for name in sorted({*certificate.profiles} ^ {*made.profiles}):
        yield f"profile {name}: {'refuses the model' if name in certificate.profiles else 'takes the model'}"
    yield from _unequal(certificate.document, made.document)


def _unequal(claimed: Any, proved: Any, kind: str = "", where: str = "") -> Iterator[str]:
    """Yield the statements that the new proof does not repeat, and those that a certificate does not have.

    `kind` is the path of the keys, `where` the place for a reader.
    """
    if isinstance(claimed, dict) and isinstance(proved, dict):
        for key in sorted({*claimed} ^ {*proved}):
            yield f"{where}{key}: " + ("a certificate has no such entry" if key in claimed else "is missing")
        for key in sorted({*claimed} & {*proved}):
            inner = "" if isinstance(proved[key], list) and _is_listed(proved[key]) else f"{where}{key}: "
            yield from _unequal(claimed[key], proved[key], f"{kind}: {key}" if kind else key, inner)
    elif isinstance(claimed, list) and isinstance(proved, list) and _is_listed(proved):
        if len(claimed) != len(proved):
            yield f"{kind}: the certificate has {len(claimed)}, the proof gives {len(proved)}"
        for one, other in zip(claimed, proved, strict=False):
            yield from _unequal(one, other, kind, f"{_name(kind, other)}: ")
    elif type(claimed) is not type(proved) or (claimed != proved and kind not in _UNPROVED):
        yield f"{where}the certificate has {claimed!s:.80}, the proof gives {proved!s:.80}"


def _name(kind: str, entry: dict[str, Any]) -> str:
    """Return the name of a listed entry."""
    if "op" in entry:
        return f"operator {entry['index']} {entry['op']}"
    return f"{kind} {entry['name']}" if "name" in entry else kind


def _is_listed(entries: list[Any]) -> bool:
    return all(isinstance(entry, dict) for entry in entries)


def settle(model: Source | Model, effects: Effects) -> Effects:
    """Return the effects without those that change no bit for any input; these profiles are listed as proved."""
    parts = dict(root_subgraphs(subject(model).model))
    operators = (_settle(parts[one.subgraph], effects.base, one) for one in effects.operators)
    return replace(effects, operators=tuple(operators))


def _settle(model: Model, base: str, operator: OperatorEffects) -> OperatorEffects:
    others = [by_name(effect.profile) for effect in operator.effects if effect.field != "refused"]
    if not others:
        return operator
    verdicts = contrast(model, operator.index, by_name(base), others)
    equal = tuple(verdict.second for verdict in verdicts if verdict.word == Word.EQUAL)
    left = tuple(effect for effect in operator.effects if effect.profile not in equal)
    return replace(operator, effects=left, proved=equal)
