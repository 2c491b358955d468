"""Stand-ins for a Python that has a runtime installed: programs that end as a broken runtime would."""

from __future__ import annotations

import stat
from pathlib import Path


def fake_python(folder: Path, script: str) -> str:
    """The path of an executable that runs `script` (POSIX shell)."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
