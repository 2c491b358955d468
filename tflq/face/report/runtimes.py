"""Runtimes as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tflq.face.report.numbers import counted


def runtime_text(runtime: Any) -> str:
    """Return the package, version and settings of a runtime in one line."""
    fact = runtime.get if isinstance(runtime, Mapping) else lambda name, default="": getattr(runtime, name, default)
    if not fact("package", ""):
        return "an unnamed runtime"
    text = f"{fact('package', '')} {fact('version', '')} {fact('resolver', '')}, " + counted(
        fact("threads", 1), "thread"
    )
    if fact("delegate", ""):
        text += f", {fact('delegate', '')} in {counted(sum(fact('delegated', ())), 'partition')}"
    cpu = f" on {fact('cpu', '')}" if fact("cpu", "") else ""
    return f"{text}, {fact('platform', '')}{cpu}"
