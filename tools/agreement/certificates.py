"""The claim of a certificate of `tflq prove`: tensors that have the same bits in some runtimes, for every input."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tflq.errors import InputError
from tflq.model.ir import Model, view
from tflq.model.surgery.tap import visible

SCHEMA = "tflq/certificate/1"


@dataclass(frozen=True)
class Claim:
    """Tensors of the first subgraph, and the profiles that give them the same bits; None means all."""

    tensors: frozenset[int]
    profiles: frozenset[str] | None

    def names(self, profile: str) -> bool:
        """Return whether it is about a profile."""
        return self.profiles is None or profile in self.profiles


def claim_of(model: Model, file: Path, certificate: Path | None) -> Claim:
    """Return the claim; without a certificate, that all runtimes agree on every tensor that an operator makes.

    Raises:
        InputError: The certificate cannot be read, or is that of another model.
    """
    if certificate is None:
        return Claim(frozenset(visible(view(model))), None)
    try:
        document = json.loads(certificate.read_bytes())
        first = next(part for part in document["coverage"] if part["subgraph"] == 0)
        names = [name for profile in document["profiles"] for name in (profile["name"], *profile["also"])]
        digest, schema = document["model"]["sha256"], document["schema"]
        tensors = frozenset(int(tensor) for tensor in first["covered"])
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise InputError("certificate cannot be read", name=str(certificate), got=repr(error)) from error
    if schema != SCHEMA:
        raise InputError("schema of the certificate", name=str(certificate), expected=SCHEMA, got=schema)
    own = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != own:
        raise InputError("certificate of another model", name=str(certificate), expected=own, got=digest)
    return Claim(tensors, frozenset(names))
