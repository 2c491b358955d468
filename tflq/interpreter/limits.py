"""How much memory and work a run may take, and the count of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tflq.errors import LimitError

#: Bytes of all that is held at the same time, constants of the file left out, unless asked for otherwise.
DEFAULT_MEMORY = 4 << 30
#: Passes of innermost loops (tflq/kernels/work.py), unless asked for otherwise.
DEFAULT_WORK = 10**13

#: What calling a subgraph counts, and besides each operator of it: about as much as BLAS does in the time that Python
#: takes, many times over, so that an endless loop of small operators ends within seconds rather than days.
CALL_WORK, STEP_WORK = 60_000_000, 24_000_000
#: The same for preparing a subgraph, for input shapes that it was not prepared for before.
PREPARE_WORK, PREPARE_STEP_WORK = 1_000_000_000, 200_000_000


def call_work(steps: int) -> int:
    """What it counts to call a subgraph of that many operators, besides the operators' own work."""
    return CALL_WORK + STEP_WORK * steps


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take. Beyond that it is a LimitError, before the operator that would go beyond has begun.

    Attributes:
        memory: Bytes of tensors and of what operators need besides, alive at the same time. Constants of the file do
            not count; what is derived from them is held against the same limit by itself.
        work: Multiply-accumulates, or whatever else the innermost loops of operators do, of one run.
    """

    memory: int = DEFAULT_MEMORY
    work: int = DEFAULT_WORK


_GENEROUS = Limits()
_CURRENT: ContextVar[Limits] = ContextVar("limits", default=_GENEROUS)


def current_limits() -> Limits:
    """What plans keep to that are made here without limits of their own."""
    return _CURRENT.get()


@contextmanager
def limits_within(limits: Limits) -> Iterator[None]:
    """Let these be the current limits of the block, in this thread, as numpy.errstate does with errors.

    No result depends on them, only whether there is one.
    """
    token = _CURRENT.set(limits)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Meter:
    """Work that has been spent, against a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, work: int, place: str) -> None:
        """Count work that is about to be done; a LimitError where that is too much."""
        self.spent += work
        if self.spent > self.limit:
            raise LimitError(
                f"{place}work of {self.spent} passes of innermost loops, {work} of them here, more than the limit of "
                f"{self.limit} passes; raise work_limit (--work-limit) if that is meant"
            )
