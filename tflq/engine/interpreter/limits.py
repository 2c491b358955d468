"""Limits on the memory and work of a run, and the count of work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from tflq.errors import LimitError

#: Default limit on bytes that are held at the same time, without constants of the file.
DEFAULT_MEMORY = 4 << 30
#: Default limit on passes of innermost loops (tflq/engine/kernels/work.py).
DEFAULT_WORK = 10**13

#: Work counted for calling a subgraph, and for each of its operators: roughly what BLAS does in many times the time of
#: Python's overhead. So an endless loop of small operators ends within seconds rather than days.
CALL_WORK, STEP_WORK = 60_000_000, 24_000_000
#: Work counted for preparing a subgraph for new input shapes, and for each of its operators.
PREPARE_WORK, PREPARE_STEP_WORK = 1_000_000_000, 200_000_000


def call_work(steps: int) -> int:
    """Return the work counted for calling a subgraph with this number of operators, besides their own work."""
    return CALL_WORK + STEP_WORK * steps


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run. An operator that would exceed them raises a LimitError before it begins.

    Attributes:
        memory: Bytes of tensors and of operators' working memory, alive at the same time. Constants of the file do not
            count; data derived from them are compared with the same limit separately.
        work: Multiply-accumulates, or other passes of the operators' innermost loops, of one run.
    """

    memory: int = DEFAULT_MEMORY
    work: int = DEFAULT_WORK


_GENEROUS = Limits()
_CURRENT: ContextVar[Limits] = ContextVar("limits", default=_GENEROUS)


def current_limits() -> Limits:
    """Return the limits of plans that are made here without limits of their own."""
    return _CURRENT.get()


@contextmanager
def limits_within(limits: Limits) -> Iterator[None]:
    """Set the current limits for the block, in this thread, as numpy.errstate does for errors.

    They decide only whether there is a result, never its value.
    """
    token = _CURRENT.set(limits)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Meter:
    """Work that has been done, compared with a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, work: int, place: str) -> None:
        """Count work before it is done; raise a LimitError if it is too much."""
        self.spent += work
        if self.spent > self.limit:
            raise LimitError(
                f"{place}work of {self.spent} passes of innermost loops, {work} of them here, more than the limit of "
                f"{self.limit} passes; raise work_limit (--work-limit) to allow it"
            )
