"""Verification: a profile's results held against a real runtime's, or against a golden file's.

The names below are loaded when they are first used: inspecting a model needs none of the machinery that compares.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflq.verification.comparing import Difference, difference
    from tflq.verification.golden import Golden, load_golden
    from tflq.verification.results import OperatorResult, Report, Status, TensorResult, Verdict
    from tflq.verification.session import record, verify

__all__ = [
    "Difference",
    "Golden",
    "OperatorResult",
    "Report",
    "Status",
    "TensorResult",
    "Verdict",
    "difference",
    "load_golden",
    "record",
    "verify",
]

#: Which module each public name lives in.
_HOMES = {
    "Difference": "comparing",
    "difference": "comparing",
    "Golden": "golden",
    "load_golden": "golden",
    "OperatorResult": "results",
    "Report": "results",
    "Status": "results",
    "TensorResult": "results",
    "Verdict": "results",
    "record": "session",
    "verify": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tflq.verification' has no attribute {name!r}")
    value = getattr(import_module(f"tflq.verification.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
