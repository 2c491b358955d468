"""Verification: compare a profile's results with a real runtime's, or with a golden file's.

The names below are loaded on first use: inspecting a model does not need the comparison code. `__init__.pyi` declares
them for type checkers.
"""

from __future__ import annotations

from typing import Any

from tflq.interrupts import import_whole

#: The module of each public name.
_HOMES = {
    "Difference": "tflq.inspection.difference",
    "difference": "tflq.inspection.difference",
    "Golden": "tflq.verification.golden",
    "load_golden": "tflq.verification.goldens",
    "OperatorResult": "tflq.verification.results",
    "Report": "tflq.verification.report",
    "Status": "tflq.verification.results",
    "TensorResult": "tflq.verification.results",
    "Verdict": "tflq.verification.results",
    "record": "tflq.verification.session",
    "verify": "tflq.verification.session",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tflq.verification' has no attribute {name!r}")
    value = getattr(import_whole(_HOMES[name]), name)
    globals()[name] = value
    return value
