"""The released runtimes of profiles, and their places in a folder of virtual environments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflq.engine.profiles import PROFILES
from tflq.engine.runtimes.child.tflq_processor import describe

MODULES = {
    "tensorflow-cpu": "tensorflow.lite.python.interpreter",
    "tflite-runtime": "tflite_runtime.interpreter",
    "ai-edge-litert": "ai_edge_litert.interpreter",
    "ai-edge-litert-nightly": "ai_edge_litert.interpreter",
}
#: The resolver of releases with only one, which no argument chooses.
ONLY_RESOLVER = "BuiltinOpResolver"


@dataclass(frozen=True)
class Release:
    """A profile and the Python that has its runtime; `resolver` is empty if there is no choice."""

    profile: str
    python: Path
    module: str
    resolver: str


def releases(folder: Path) -> Iterator[Release]:
    """Yield the profiles of Python packages on x86-64, without those of other vector extensions than this machine's.

    `folder` holds environments named PACKAGE-VERSION; this Python's own LiteRT is assumed to be 2.3.
    """
    own = describe()["vectors"]
    for name, profile in PROFILES.items():
        source = profile.source
        if source.package in MODULES and source.cpu.startswith("x86-64") and source.vectors in ("", own):
            here = source.package == "ai-edge-litert" and source.version == "2.3.0"
            python = Path(sys.executable) if here else folder / f"{source.package}-{source.version}" / "bin" / "python"
            resolver = "" if source.resolver == ONLY_RESOLVER else source.resolver
            yield Release(name, python, MODULES[source.package], resolver)
