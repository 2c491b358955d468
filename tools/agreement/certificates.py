"""The tensors that a certificate of `tflq prove` covers."""

from __future__ import annotations

import json
from pathlib import Path

from tflq.ir import Model, view
from tflq.surgery.tap import visible


def proved_tensors(model: Model, certificate: Path | None) -> frozenset[int]:
    """Return the tensors whose bits are proved; without a certificate, all that operators make."""
    if certificate is None:
        return frozenset(visible(view(model)))
    return frozenset(json.loads(certificate.read_text(encoding="utf-8"))["covered"])
