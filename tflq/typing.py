"""Types that many rooms share: arrays, and the callback of progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import NDArray

#: An array of any type.
Array: TypeAlias = NDArray[Any]

#: Called as progress(what, done, total) while work goes on; a total of 0 means that it is unknown.
Progress: TypeAlias = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Ignore progress."""
