"""Sides of one case, timed in turns: each has a short burst of invokes, then the next side has its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter

from tflq.comparison.benchmark.results import Side
from tflq.comparison.inspection.difference import difference
from tflq.engine.runtimes.process import ProcessRuntime
from tflq.engine.runtimes.timed import Contestant, Job, contestant
from tflq.errors import RuntimeMissing, TflqError
from tflq.progress import Progress
from tflq.typing import Array

#: Seconds of a burst, and the least number of turns.
BURST, LEAST = 0.05, 3


class Race:
    """The sides of a case, each in a process of its own. Sides that fail leave; the others go on."""

    def __init__(self, stack: ExitStack, job: Job, tell: Progress) -> None:
        self._stack, self._job, self._tell = stack, job, tell
        self._running: list[tuple[Side, Contestant]] = []
        self._expected: Sequence[Mapping[str, Array]] = ()

    def enter(self, side: Side, runtime: ProcessRuntime) -> Contestant | None:
        """Start a side, which runs every step once, and compare its outputs with those of the first side.

        Processes start one after the other, so that none is slowed down by another's start. The result is None if the
        side failed.

        Raises:
            RuntimeMissing: It is not installed.
            TflqError: The first side failed.
        """
        self._tell(f"starting {side.label}", 0, 0)
        try:
            ready = self._stack.enter_context(contestant(runtime, self._job))
            ready.burst(0.0)  # not counted: plans that run again are bound to memory now
        except RuntimeMissing:
            raise
        except TflqError as error:
            side.failure = str(error)
            if not self._running:
                raise
            return None
        side.description = ready.description
        side.imported, side.loaded, side.first = ready.imported, ready.loaded, ready.first
        if not self._running:
            self._expected = ready.outputs
            side.bits = "same"
        else:
            side.bits, side.reason = compare(self._expected, ready.outputs)
        self._running.append((side, ready))
        return ready

    def run(self, seconds: float, runs: int | None) -> None:
        """Time all sides in turns.

        There are LEAST turns at least. After them, turns end when bursts took `seconds` for each side, or, with `runs`,
        when every side has as many invokes.

        Raises:
            TflqError: The first side failed.
        """
        first, begun = self._running[0][0], perf_counter()
        while True:
            for side, ready in list(self._running):
                try:
                    times, side.peak = ready.burst(BURST)
                except TflqError as error:
                    side.failure = str(error)
                    self._running.remove((side, ready))
                    if side is first:
                        raise
                else:
                    side.turns.append(times)
            done = (perf_counter() - begun) / len(self._running)
            if runs is not None:
                done = min(sum(map(len, side.turns)) for side, _ in self._running)
            total = seconds if runs is None else runs
            if len(first.turns) >= LEAST and done >= total:
                return
            self._tell("timing", int(1000 * min(done / total, 1.0)) if total else 1000, 1000)


def compare(expected: Sequence[Mapping[str, Array]], got: Sequence[Mapping[str, Array]]) -> tuple[str, str]:
    """Return "same", "differs" or "not compared" for the outputs of all steps, and details."""
    steps = list(zip(expected, got, strict=True))
    pairs = [(one.get(name), other.get(name)) for one, other in steps for name in dict.fromkeys((*one, *other))]
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both:
        return "not compared", "no output has a value on both sides"
    differing = sum(not difference(a, b).same for a, b in both)
    without = len(pairs) - len(both)
    details = f"{without} of {len(pairs)} outputs without a value on one side" if without else ""
    if differing:
        return "differs", f"{differing} of {len(both)} outputs differ" + (f"; {details}" if details else "")
    return ("not compared", details) if without else ("same", "")
