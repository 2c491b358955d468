"""Lint: violations of the 8-bit quantization spec and of kernels' requirements, found in the file. Nothing is run.

The names below are loaded on first use: `inspect` needs a few rules only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflq.interrupts import import_whole

if TYPE_CHECKING:
    from tflq.diagnosis.linting.checking import Lint, lint
    from tflq.diagnosis.linting.findings import Finding, Level

__all__ = ["Finding", "Level", "Lint", "lint"]

_HOMES = {"Finding": "findings", "Level": "findings", "Lint": "checking", "lint": "checking"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(import_whole(f"{__name__}.{_HOMES[name]}"), name)
    return globals()[name]
