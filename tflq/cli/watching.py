"""`--watch`: run the same command again whenever a file that it names has changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from tflq.cli.exits import Exit

#: Seconds between two looks at the files.
INTERVAL = 0.5

State = dict[str, tuple[float, int] | None]


def files_of(words: Sequence[str]) -> list[str]:
    """The words, and what stands after their "=", that name files or folders; outputs are none of them."""
    outputs = {words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-o", "--output", "--html", "--junit")}
    candidates = (part for word in words for part in (word, word.rpartition("=")[2]))
    return [path for path in dict.fromkeys(candidates) if path not in outputs and os.path.exists(path)]


def state_of(paths: Sequence[str]) -> State:
    """Time and size of each file, None for one that is not there."""
    return {path: _stat(path) for path in paths}


def watch(run: Callable[[], int], paths: Sequence[str], say: Callable[[str], None]) -> int:
    """Run, and again after each change of a file, until a signal ends it; returns the exit code then."""
    while True:
        before = state_of(paths)
        code = run()
        if code in (Exit.INTERRUPTED, Exit.TERMINATED):
            return code
        say(f"tflq: exit code {code}; watching {', '.join(paths)} (Ctrl-C ends)")
        while (now := state_of(paths)) == before or None in now.values():
            time.sleep(INTERVAL)


def _stat(path: str) -> tuple[float, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime, status.st_size
