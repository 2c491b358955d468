"""Progress reports of work."""

from __future__ import annotations

from tflq.progress import Progress

#: Number of steps into which a part of the whole is divided.
STEPS = 100


def part_of(progress: Progress | None, part: str, done: int, total: int) -> Progress | None:
    """Return the progress of part `done` of `total` equal ones, which reports to the progress of the whole."""
    if progress is None:
        return None

    def tell(what: str, steps: int, of: int) -> None:
        share = min(STEPS, STEPS * steps // of) if of else 0
        text = f"{part}: {what} {steps}" + (f" of {of}" if of else "")
        progress(text, STEPS * done + share, STEPS * total)

    return tell
