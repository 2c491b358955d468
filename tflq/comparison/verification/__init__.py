"""Verification: compare a profile's results with a real runtime's, or with a golden file's.

The names below are loaded on first use: inspecting a model does not need the comparison code. `__init__.pyi` declares
them for type checkers.
"""

from __future__ import annotations

from typing import Any

from tflq.interrupts import import_whole

#: The module of each public name.
_HOMES = {
    "Difference": "tflq.comparison.inspection.difference",
    "difference": "tflq.comparison.inspection.difference",
    "Golden": "tflq.comparison.verification.golden",
    "load_golden": "tflq.comparison.verification.goldens",
    "OperatorResult": "tflq.comparison.verification.results",
    "Report": "tflq.comparison.verification.report",
    "Status": "tflq.comparison.verification.results",
    "TensorResult": "tflq.comparison.verification.results",
    "Verdict": "tflq.comparison.verification.results",
    "record": "tflq.comparison.verification.verifying",
    "verify": "tflq.comparison.verification.verifying",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tflq.comparison.verification' has no attribute {name!r}")
    value = getattr(import_whole(_HOMES[name]), name)
    globals()[name] = value
    return value
