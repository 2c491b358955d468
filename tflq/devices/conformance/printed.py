"""Capture the output of a child process: keep its end, and detect endless output."""

from __future__ import annotations

import os
import subprocess
import threading
import time

#: Maximum number of bytes that a target may print in one call.
MOST_PRINTED = 64 << 20
#: Number of last bytes that an error quotes.
_LAST_WORDS = 300
_PIECE = 1 << 16
#: Seconds between two polls of a child, and seconds to wait for the rest of its output after it ends.
_LOOK, _REST = 0.05, 1.0


class Printed:
    """The output of a child whose stdout is a pipe. A thread reads it until it ends or exceeds the limit."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None  # the child was started with a pipe
        self._child, self._size, self._last = child, 0, b""
        self._pipe = os.dup(child.stdout.fileno())  # the thread may read on after the child's own is closed
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, timeout: float) -> int | None:
        """Return the child's exit status, or None if it printed too much.

        Raises:
            subprocess.TimeoutExpired: It has not ended after that many seconds.
        """
        end = time.monotonic() + timeout
        while self._size <= MOST_PRINTED:
            left = end - time.monotonic()
            try:
                status = self._child.wait(max(0.0, min(left, _LOOK)))
            except subprocess.TimeoutExpired:
                if left <= 0:
                    raise
                continue
            self._thread.join(_REST)
            return status if self._size <= MOST_PRINTED else None
        return None

    def last_words(self) -> str:
        """Return the last line of the output, or its end: a traceback's last line states the error."""
        return self._last.decode("utf-8", "replace").strip().rpartition("\n")[2].strip()

    def _read(self) -> None:
        with os.fdopen(self._pipe, "rb", 0) as pipe:
            while self._size <= MOST_PRINTED and (piece := pipe.read(_PIECE)):
                self._size += len(piece)
                self._last = (self._last + piece)[-_LAST_WORDS:]
