"""The callback of progress that all rooms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Called as progress(what, done, total) while work goes on; a total of 0 means that it is unknown.
Progress: TypeAlias = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""
