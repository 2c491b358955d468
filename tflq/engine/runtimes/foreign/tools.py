"""Programs of the environment that the adapters of TOSA and IREE call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

#: Seconds that one call may take.
SECONDS = 120
#: Characters of an error that are kept.
_KEPT = 200
#: Where this Python's environment keeps its programs.
BIN = os.path.dirname(sys.executable)


def program(name: str) -> str:
    """Return the path of a program of this environment; raise an ImportError if there is none."""
    found = shutil.which(name, path=BIN)
    if found is None:
        raise ImportError(f"no program {name} beside {sys.executable}")
    return found


def call(*words: str) -> Any:
    """Run a program, which finds those of this environment only; return what it printed.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env={"PATH": BIN})
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[:_KEPT]
        raise RuntimeError(f"{os.path.basename(words[0])}: {said or f'exit status {done.returncode}'}")
    return done.stdout
