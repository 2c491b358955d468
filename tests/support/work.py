"""Work counted, not timed: how often functions of tflq are called, which no load on the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import tflq

_HOUSE = str(Path(tflq.__file__).parent)


class Work:
    """Calls of Python functions of tflq, counted as they happen."""

    def __init__(self, most: float) -> None:
        self.calls, self._most = 0, most

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """As sys.setprofile calls it."""
        if event == "call" and frame.f_code.co_filename.startswith(_HOUSE):
            self.calls += 1
            if self.calls > self._most:
                raise AssertionError(f"more than {self._most} calls")


@contextmanager
def at_most(calls: float) -> Iterator[Work]:
    """A block in which this thread calls functions of tflq that often at most: the next call is an AssertionError."""
    work = Work(calls)
    before = sys.getprofile()
    sys.setprofile(work)
    try:
        yield work
    finally:
        sys.setprofile(before)
