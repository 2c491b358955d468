"""How work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

#: Called as progress(what, done, total) while work goes on; total 0 where nobody knows it.
Progress: TypeAlias = "Callable[[str, int, int], None]"

#: Steps into which a part of the whole is divided.
STEPS = 100


def part_of(progress: Progress | None, part: str, done: int, total: int) -> Progress | None:
    """Return the progress of a part, number `done` of `total` equal ones, told to the progress of the whole."""
    if progress is None:
        return None

    def tell(what: str, steps: int, of: int) -> None:
        share = min(STEPS, STEPS * steps // of) if of else 0
        text = f"{part}: {what} {steps}" + (f" of {of}" if of else "")
        progress(text, STEPS * done + share, STEPS * total)

    return tell
